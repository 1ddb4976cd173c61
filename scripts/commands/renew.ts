import { type ExitKit, parseExitKit } from "../../core/exit/kit.ts";
import { type Address, type Hash, STANDARDS } from "../../core/model.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { MAX_LISTED_VAULTS } from "../../core/protocol/typed-data.ts";
import * as api from "../../server/client/index.ts";
import { renewSettings } from "../../server/process/settings/process-settings.ts";
import { addressOf, addressOfServer, processAccount } from "../cli/arguments.ts";
import { command, type Options } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";
import { chainOf, ifFunded, madeIn, unfunded } from "../cli/l1.ts";
import { readExitKit } from "./exit.ts";
import { signedIn } from "./transfer.ts";

const VAULTS = "9223372036854775808 9223372036855824384";
const TOKEN = "0x5FbDB2315678afecb367f032d93F642f64180aa3";

export const renewCommand = command({
  examples: [
    `renew ${VAULTS} --rpc https://rpc.example --url https://mint.example < owner.key`,
    `renew --token ${TOKEN} --wait`,
    "renew kits/*.json --rpc https://rpc.example < owner.key",
  ],
  settings: renewSettings,
  options: {
    "--token <address>": `in the place of vaults: those of this token that the owner holds, at most ${MAX_LISTED_VAULTS}`,
    "--recipient <address>":
      "who gets the new vaults, if the token is transferable; default the owner",
    "--wait": "wait until the new vaults are final, so that their ids stay",
    "--url <url>": "the server's address, for what is not a kit's file (MINTMARK_URL)",
  },
  notes:
    "The owner signs in to the server for the proofs, and its account sends and pays: MINTMARK_OWNER_KEY, or standard input." +
    "\nNothing is sent unless L1 would take all of the vaults.",
  columns: ["vaultId", "ownerAddress", "token", "tokenId", "amount", "txHash"],
  async work({ options, args: vaults, ...running }, settings) {
    const { signal, progress } = running;
    const { account } = await processAccount("OWNER");
    const recipient =
      options.recipient === undefined
        ? {}
        : { recipient: addressOf(options.recipient, "--recipient") };
    const kits = await kitsOf(vaults, options, { account, signal });
    const [{ settlement }] = kits;
    const place = { MINTMARK_CONTRACT: settlement.contract, ...settings };
    const [{ renewWithKits }, { connectL1 }] = await Promise.all([
      import("../../core/exit/index.ts"),
      import("../../core/l1/index.ts"),
    ]);
    const l1 = await connectL1({ ...chainOf(place), chainId: settlement.chainId, account });
    const onSent = (sent: Hash) => progress(`sent transaction ${sent}`);
    const sending = renewWithKits({
      ...{ kits, l1, account: account.address, signal, onSent },
      ...recipient,
    });
    const { txHash } = await ifFunded(l1, sending, unfunded(account.address));
    const made = await madeIn(l1, txHash, options.wait === true, running);
    return made.map(({ assetType: type, mintingBlob, ...shown }) => {
      const origin = kits.find(
        ({ vault }) => vault.assetType === type && vault.mintingBlob === mintingBlob,
      );
      const { address: token, tokenId = null } = origin?.token ?? {};
      return { ...shown, token, tokenId };
    });
  },
});

type Owner = Pick<Parameters<typeof ask>[1], "account" | "signal">;
type Kits = readonly [ExitKit, ...ExitKit[]];

/** The kits of what the arguments name: files, or vaults of which the server has kits. */
async function kitsOf(vaults: readonly string[], options: Options, owner: Owner): Promise<Kits> {
  const { token } = options;
  if ((token === undefined) === (vaults.length === 0))
    throw new UsageError("give the ids of vaults, the files of their exit kits, or --token");
  const isId = (text: string) => /^\d{1,19}$/.test(text);
  const client = token !== undefined || vaults.some(isId) ? await ask(options, owner) : null;
  const ids =
    client !== null && token !== undefined
      ? await heldOf(client, addressOf(token, "--token"))
      : vaults;
  if (ids.length > MAX_LISTED_VAULTS)
    throw new UsageError(
      `a renewal takes at most ${MAX_LISTED_VAULTS} vaults, not ${ids.length}; renew the rest after it`,
    );
  const kits: ExitKit[] = [];
  for (const each of ids) {
    owner.signal.throwIfAborted();
    kits.push(client !== null && isId(each) ? await kitOf(client, each) : await readExitKit(each));
  }
  return kits as unknown as Kits;
}

async function ask(
  options: Options,
  { account, signal }: { account: Parameters<typeof signedIn>[1]; signal: AbortSignal },
) {
  const baseUrl = addressOfServer(options.url);
  return api.createClient({ baseUrl, accessToken: await signedIn(baseUrl, account, signal) });
}

/** The contract judges the kit. Only which vault it is for is the server's word. */
async function kitOf(client: api.MintmarkClient, vaultId: string): Promise<ExitKit> {
  const params = { path: { vaultId } };
  const answered = api.answer(client.GET("/owner/v1/vaults/{vaultId}/exit-kit", { params }));
  const kit = parseExitKit(JSON.stringify(await answered));
  if (`${kit.tip.vaultId}` === vaultId) return kit;
  throw new Error(`the server gave the kit of vault ${kit.tip.vaultId}, not of ${vaultId}`);
}

/** A server's answer names no token, but its type of asset, which follows from the token. */
function isOf(token: Address, vault: { readonly assetType: string; readonly quantum: string }) {
  return STANDARDS.some((standard) => {
    const quantum = standard === "erc20" ? BigInt(vault.quantum) : 1n;
    return assetType(standard, token, quantum) === vault.assetType;
  });
}

/** The owner's vaults of a token that L1 has and nothing else holds. */
async function heldOf(client: api.MintmarkClient, token: Address): Promise<string[]> {
  const isOnL1 = ({ status }: { readonly status: string }) =>
    status === "settled" || status === "finalized";
  const all = api.everyEntry((cursor) =>
    client.GET("/owner/v1/vaults", {
      params: { query: { limit: 100, ...(cursor && { cursor }) } },
    }),
  );
  const held: { readonly vaultId: string; readonly hops: number }[] = [];
  for await (const vault of all)
    if (isOf(token, vault) && vault.standing === "held" && isOnL1(vault)) held.push(vault);
  if (held.length === 0)
    throw new Error(`the owner holds no vault of ${token} that L1 has: wait for its batch`);
  if (held.length === 1 && held[0]?.hops === 0)
    throw new Error(
      `the owner holds one vault of ${token}, ${held[0].vaultId}, which no transfer has made: nothing to renew`,
    );
  const left = held.length - MAX_LISTED_VAULTS;
  if (left > 0)
    process.stderr.write(`${left} further vaults stay as they are: run it again for them\n`);
  return held.slice(0, MAX_LISTED_VAULTS).map(({ vaultId }) => vaultId);
}
