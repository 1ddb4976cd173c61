import type { LocalAccount } from "viem";
import type { Address, Hash } from "../../core/index.ts";
import * as api from "../../server/client/index.ts";
import { sessionSettings } from "../../server/process/settings/process-settings.ts";
import { addressOf, addressOfServer, partOf, processAccount, secondsOf } from "../cli/arguments.ts";
import { command, type Given } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";
import { chainOf } from "../cli/l1.ts";

const VAULT = "9223372036854775808";
const FRIEND = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

const TO = "give an address. To burn a vault, use `mintmark redeem`";

/** Both commands that need an owner's signature have these. */
const SIGNED = {
  options: {
    "--amount <tokens>": "whole tokens of one vault, such as 12.5; default all that is left",
    "--units <number>": "in the place of --amount: units, as the API counts them",
    "--session":
      "sign by a session key (MINTMARK_SESSION_KEY), not by the owner (MINTMARK_OWNER_KEY)",
    "--deadline <time>":
      "when it fails if L1 has not got it, such as 12h; default 1d, with --session 2h",
    "--wait":
      "wait until the vaults are final on L1, and then the transfer, so that the receiver can rely on it",
    "--url <url>": "the server's address (MINTMARK_URL)",
  },
  notes:
    "The key is read from the environment or standard input. With MINTMARK_API_KEY the application sends the transfer;" +
    "\nwithout it the owner signs in to the server, which pays for so many vaults of an owner a day.",
  columns: ["vaultId", "tokenId", "to", "amount", "newVaultId", "failure"],
  failed: ({ status, failure }: api.OwnersTransfer) =>
    status === "failed" ? `the transfer has failed and moved nothing: ${failure}` : null,
};

export const transfer = command({
  examples: [
    `transfer ${VAULT} --to ${FRIEND} --url https://mint.example < owner.key`,
    `transfer ${VAULT} --to ${FRIEND} --amount 25 --wait`,
    `transfer ${VAULT} --to ${FRIEND} --session`,
  ],
  required: { "--to <address>": "the receiver, for ever: nobody can take a transfer back" },
  ...SIGNED,
  work: async (given) => give(given, { to: addressOf(given.options.to, "--to", TO) }),
});

export const redeem = command({
  examples: [
    `redeem ${VAULT} --url https://mint.example < owner.key`,
    `redeem ${VAULT} --amount 3 --wait`,
  ],
  ...SIGNED,
  work: (given) => give(given, { redeem: true }),
});

export const cancelTransfer = command({
  examples: ["cancel-transfer 0x5f3a… --rpc https://rpc.example --contract 0x… < owner.key"],
  settings: sessionSettings,
  options: {
    "--session":
      "by the session key that signed (MINTMARK_SESSION_KEY), not by the owner (MINTMARK_OWNER_KEY)",
  },
  notes:
    "`mintmark transfer` prints the digest. L1 counts no commit of a later second. What it has by then stays." +
    "\nWith MINTMARK_URL and MINTMARK_API_KEY the server is asked first whether L1 has the transfer already.",
  /**
   * The transaction of one account says nothing about other lists, so a wrong digest does no harm.
   */
  async work({ options, args: [digest = ""], signal, progress }, settings) {
    if (!/^0x[0-9a-fA-F]{64}$/.test(digest))
      throw new UsageError("<digest>: give 0x and 64 hex digits");
    const { account } = await processAccount(options.session === true ? "SESSION" : "OWNER");
    await requireOpen(digest, signal);
    const { connectL1 } = await import("../../core/l1/index.ts");
    const l1 = await connectL1({ ...chainOf(settings), account });
    const onSent = (txHash: Hash) => progress(`sent transaction ${txHash}`);
    const { txHash } = await l1.cancelTransfers(digest.toLowerCase() as Hash, { signal, onSent });
    return { digest: digest.toLowerCase(), signer: account.address.toLowerCase(), txHash };
  },
});

/**
 * A cancellation of what L1 has already would cost gas for nothing. Without a server nobody can
 * tell.
 */
async function requireOpen(digest: string, signal: AbortSignal): Promise<void> {
  const { MINTMARK_URL: baseUrl, MINTMARK_API_KEY: apiKey } = process.env;
  if (!baseUrl || !apiKey) return;
  const client = api.createClient({ baseUrl, apiKey });
  const params = { path: { transferId: digest } };
  const { data } = await client.GET("/api/v1/transfers/{transferId}", { params, signal });
  if (data?.status !== "settled" && data?.status !== "finalized") return;
  throw new Error(
    `the transfer is ${data.status}: L1 has it, so it can no longer be cancelled. No transaction was sent`,
  );
}

async function give(
  { options, args: vaultIds, ...running }: Given,
  receiver: { to: Address } | { redeem: true },
) {
  const { signal, progress } = running;
  if ((options.amount ?? options.units) !== undefined && vaultIds.length > 1)
    throw new UsageError("--amount and --units are for one vault");
  const bySession = options.session === true;
  // The bounds of a session must cover the deadline, and sessions are short.
  const deadline = options.deadline ?? (bySession ? "2h" : undefined);
  const until = deadline === undefined ? {} : { deadline: `${secondsOf(deadline, "--deadline")}` };
  const baseUrl = addressOfServer(options.url);
  const apiKey = process.env.MINTMARK_API_KEY || undefined;
  if (bySession && apiKey === undefined)
    throw new UsageError(
      "--session needs MINTMARK_API_KEY: only owners sign in, and the session's key owns nothing",
    );
  const { account } = await processAccount(bySession ? "SESSION" : "OWNER");
  const client =
    apiKey === undefined
      ? api.createClient({ baseUrl, accessToken: await signedIn(baseUrl, account, signal) })
      : api.createClient({ baseUrl, apiKey });
  const part = await partOf(options, () =>
    unitsOfVault(client, vaultIds[0] ?? "", apiKey === undefined),
  );
  const amount = part === undefined ? {} : { amount: `${part}` };
  const transfers = vaultIds.map((vaultId) => ({ vaultId, ...amount, ...receiver }));
  return api.transfer(client, {
    transfers,
    ...until,
    signer: account,
    asOwner: apiKey === undefined,
    wait: options.wait === true,
    signal,
    onStatus: ({ transferId, status }) => progress(`transfer ${transferId}: ${status}`),
  });
}

/** The units of a vault's whole token, as the server tells. */
async function unitsOfVault(client: api.MintmarkClient, vaultId: string, asOwner: boolean) {
  const params = { path: { vaultId } };
  const { quantum = "1", decimals = 0 } = asOwner
    ? ((await api.answer(client.GET("/public/v1/vaults/{vaultId}/metadata", { params }))) as Record<
        string,
        never
      >)
    : await api.answer(client.GET("/api/v1/vaults/{vaultId}", { params }));
  return { quantum: BigInt(quantum), decimals };
}

/** The token of an owner's sign-in, by the owner's signature over the server's challenge. */
export async function signedIn(
  baseUrl: string,
  account: LocalAccount,
  signal: AbortSignal,
): Promise<string> {
  const client = api.createClient({ baseUrl });
  const body = { address: account.address };
  const { message } = await api.answer(client.POST("/owner/v1/challenge", { body, signal }));
  const { host } = new URL(baseUrl);
  if (!message.startsWith(`${host} wants you to sign in with your Ethereum account:\n`))
    throw new Error(
      `the server's text to sign in is not for ${host}, so it is not signed; is the address right?`,
    );
  const signature = await account.signMessage({ message });
  const { token } = await api.answer(
    client.POST("/owner/v1/sign-in", { body: { message, signature }, signal }),
  );
  return token;
}
