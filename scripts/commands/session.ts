import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import type { Hex, TypedDataDefinition } from "viem";
import type { z } from "zod";
import { pause } from "../../core/backoff.ts";
import type { Address, Hash } from "../../core/index.ts";
import type { connectL1 } from "../../core/l1/index.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { readUuid } from "../../core/validate.ts";
import {
  answer,
  createClient,
  type MintmarkClient,
  type SessionKey,
} from "../../server/client/index.ts";
import type { Running } from "../../server/process/operator/operation.ts";
import { sessionSettings } from "../../server/process/settings/process-settings.ts";
import * as inputs from "../cli/arguments.ts";
import { type Options, subcommand } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";
import { chainOf } from "../cli/l1.ts";

const KEY = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const OWNER = "0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f";
const ON_L1 = "--rpc https://rpc.example --contract 0x…";
const EVERY_ASSET: Hash = `0x${"00".repeat(32)}`;
/** Servers take no transfer whose deadline is nearer, and the session must cover the deadline. */
const LEAST_SECONDS = 3_600n;
const PAID =
  "The owner's account sends the transaction. With MINTMARK_PAYER_KEY that account sends and pays.";
const PAYER_ADVICE = "fund it, or let another account pay with MINTMARK_PAYER_KEY";
const POLL_MS = 1_000;
const ANOTHER = "make another key with `mintmark session key`";
/** The end of the year 9999. */
const LAST_SECOND = 253_402_300_799;

type Settings = z.output<typeof sessionSettings>;
type Status = SessionKey["status"];
type Chain = Awaited<ReturnType<typeof connectL1>>;

const waiting = (until: string) => ({
  "--wait": `wait ${until} (with MINTMARK_API_KEY)`,
  "--url <url>": "the server's address, for what needs it (MINTMARK_URL)",
});
const SIGNED = `The owner's key is in MINTMARK_OWNER_KEY or on standard input.\n${PAID}`;

const key = subcommand({
  usage: "key <file>",
  description: "make a session key: writes it to a new file, and prints its address",
  examples: ["session key game.key"],
  async work({ args: [file = ""] }) {
    const { generatePrivateKey, privateKeyToAddress } = await import("viem/accounts");
    const key = generatePrivateKey();
    await writeFile(file, `${key}\n`, { flag: "wx", mode: 0o600 }).catch(
      (error: NodeJS.ErrnoException) => {
        throw error.code === "EEXIST" ? new UsageError(`${file} exists: name a new file`) : error;
      },
    );
    return { keyAddress: privateKeyToAddress(key).toLowerCase(), file };
  },
});

const authorizing = subcommand({
  usage: "authorize <key>",
  description: "let a key transfer the owner's vaults within bounds, by one transaction on L1",
  examples: [
    `session authorize ${KEY} --until 12h --limit-units 10 ${ON_L1} < owner.key`,
    `session authorize ${KEY} --until 2026-12-01T00:00:00Z --limit 1 --asset 0190d5c8-…`,
  ],
  settings: sessionSettings,
  required: {
    "--until <time>":
      "its last second, such as 2026-12-01T00:00:00Z, or a duration, such as 12h or 7d",
  },
  options: {
    "--limit <tokens>":
      "most whole tokens of one transfer, of the assetId; all of a vault counts its full amount",
    "--limit-units <number>":
      "in the place of --limit: units, also of an assetType or of every asset",
    "--asset <id>":
      "its only asset, by assetId (asks the server) or assetType (0x…); default every asset",
    ...waiting("until the server takes transfers of the key"),
  },
  notes: `${SIGNED}\nA key has one session with an owner for ever.`,
  /**
   * Makes the message and the call here, of the arguments and the chain's facts. The server only
   * tells the token of an asset, and when it takes the key's transfers. So a lying server cannot
   * have another message signed.
   */
  async work({ options, args: [given], signal, progress }, settings) {
    const key = keyOf(given);
    const until = inputs.secondsOf(options.until, "--until");
    if (until < inputs.nowInSeconds() + LEAST_SECONDS)
      throw new UsageError(
        "--until: give at least an hour, because the deadline of a transfer is that far ahead",
      );
    const asset = options.asset === undefined ? EVERY_ASSET : String(options.asset);
    const isNamed = !/^0x[0-9a-fA-F]{64}$/.test(asset);
    if (isNamed && readUuid(asset) === null)
      throw new UsageError("--asset: give an assetId, or an assetType (0x and 64 hex digits)");
    if ((options.limit === undefined) === (options.limitUnits === undefined))
      throw new UsageError("give --limit or --limit-units");
    if (options.limit !== undefined && !isNamed)
      throw new UsageError(
        "--limit: needs --asset with an assetId, which says how a whole token is counted; or give --limit-units",
      );
    const server = options.wait === true || isNamed ? serverOf(options) : null;
    const { owner, l1, known, send } = await meet(settings, key, { signal, progress });
    if (known.authorizedAt !== 0n || known.revokedAt !== 0n)
      throw new Error(
        `the owner has used this key before: ${ANOTHER}; \`mintmark session show\` tells of this one`,
      );
    const { token, units, ...scope } =
      isNamed && server !== null
        ? await assetOf(server, asset, signal)
        : { assetType: asset.toLowerCase() as Hash };
    const limit =
      units === undefined || options.limit === undefined
        ? inputs.unitsOf(options.limitUnits, "--limit-units")
        : inputs.tokensOf(options.limit, "--limit", units);
    const { chainId } = l1.settlement;
    if (scope.assetType !== EVERY_ASSET && !(await l1.isTransferable({ chainId, ...scope })))
      throw new Error(
        `--asset: vaults of ${asset} cannot be transferred; choose an asset whose \`transferable\` is true`,
      );
    const parties = { owner, key };
    if (server !== null) await statusOf(server, l1, parties, signal);
    const terms = { ...parties, until, limit, ...scope };
    const { sessionTypedData } = await import("../../core/protocol/transfer.ts");
    const typedData = sessionTypedData(l1.settlement, terms);
    const { txHash } = await send(typedData, (signature, options) =>
      l1.authorizeSession(terms, signature, options),
    );
    const isAwaited = server !== null && options.wait === true;
    if (isAwaited)
      await reached("active", () => statusOf(server, l1, parties, signal), { signal, progress });
    const assetType = scope.assetType === EVERY_ASSET ? null : scope.assetType;
    const bounds = { until: `${until}`, limit, assetType, ...(token && { token }) };
    const status = isAwaited ? "active" : "pending";
    return readable({ ownerAddress: owner, keyAddress: key, status, ...bounds, txHash }, options);
  },
});

const revoking = subcommand({
  usage: "revoke <key>",
  description: "end a key's session for ever, by one transaction on L1",
  examples: [`session revoke ${KEY} ${ON_L1} < owner.key`, `session revoke ${KEY} --wait`],
  settings: sessionSettings,
  options: waiting("until the server refuses transfers of the key"),
  notes: SIGNED,
  async work({ options, args: [given], signal, progress }, settings) {
    const key = keyOf(given);
    const server = options.wait === true ? serverOf(options) : null;
    const { owner, l1, known, send } = await meet(settings, key, { signal, progress });
    const parties = { owner, key };
    const status = server && (() => statusOf(server, l1, parties, signal));
    await status?.();
    const { sessionEndTypedData } = await import("../../core/protocol/transfer.ts");
    const typedData = sessionEndTypedData(l1.settlement, parties);
    const end = () =>
      send(typedData, (signature, options) => l1.revokeSession(parties, signature, options));
    const sent = known.revokedAt === 0n ? await end() : null;
    if (known.authorizedAt === 0n)
      process.stderr.write("the key had no session with this owner, and can never have one\n");
    if (status) await reached("revoked", status, { signal, progress });
    return {
      ownerAddress: owner,
      keyAddress: key,
      status: "revoked",
      txHash: sent?.txHash ?? null,
    };
  },
});

const showing = subcommand({
  usage: "show <owner> <key>",
  description: "the session of an owner with a key, as the server has read it on L1",
  examples: [`session show ${OWNER} ${KEY} --url https://mint.example`],
  options: { "--url <url>": "the server's address (MINTMARK_URL)" },
  notes: "MINTMARK_API_KEY has an API key with the scope read.",
  async work({ options, args: [owner, key], signal }) {
    const parties = { owner: inputs.addressOf(owner, "<owner>"), key: keyOf(key) };
    const { revocation, ...session } = await sessionOf(serverOf(options), parties, signal);
    return options.json === true ? { ...session, revocation } : readable(session, options);
  },
});

export function sessionCommands(group: Command): void {
  for (const add of [key, authorizing, revoking, showing]) add(group);
}

type Parties = Readonly<Record<"owner" | "key", Address>>;

/** The owner, the chain, the key's session there so far, and how to send a transaction about it. */
async function meet(settings: Settings, key: Address, { signal, progress }: Running) {
  const isPaid = ["KEY", "KEYSTORE", "SIGNER"].some(
    (name) => process.env[`MINTMARK_PAYER_${name}`],
  );
  const { account } = await inputs.processAccount("OWNER");
  const owner = account.address.toLowerCase() as Address;
  if (owner === key) throw new UsageError(`<key>: this is the owner: ${ANOTHER}`);
  const sender = isPaid ? (await inputs.processAccount("PAYER")).account : account;
  const { connectL1 } = await import("../../core/l1/index.ts");
  const l1 = await connectL1({ ...chainOf(settings), account: sender });
  const known = await l1.session(owner, key);
  if (known === null)
    throw new Error(
      `the contract ${l1.settlement.contract} has no transfers, so there are no sessions`,
    );
  const sending = { signal, onSent: (txHash: Hash) => progress(`sent transaction ${txHash}`) };
  /**
   * Sends with the owner's signature where another account pays. Nodes have many words for an
   * account without ether.
   */
  async function send<T>(
    typedData: TypedDataDefinition,
    call: (signature: Hex, how: typeof sending) => Promise<T>,
  ) {
    const signature = isPaid ? await account.signTypedData(typedData) : "0x";
    try {
      return await call(signature, sending);
    } catch (error) {
      if ((await l1.operatorBalance()) > 0n) throw error;
      throw new Error(`the sending account has no ether to pay for gas: ${PAYER_ADVICE}`);
    }
  }
  return { owner, l1, known, send };
}

export function serverOf(options: Options): MintmarkClient {
  const baseUrl = inputs.addressOfServer(options.url);
  const apiKey = inputs.setting(
    undefined,
    "MINTMARK_API_KEY",
    "an API key with the scope read, to ask the server",
  );
  return createClient({ baseUrl, apiKey });
}

/**
 * The type is derived from the token that the answer shows, because a server could tell that of
 * another.
 */
export async function assetOf(client: MintmarkClient, assetId: string, signal: AbortSignal) {
  const asset = await answer(
    client.GET("/api/v1/assets/{assetId}", { params: { path: { assetId } }, signal }),
  );
  const token = asset.contractAddress as Address;
  const units = { quantum: BigInt(asset.quantum), decimals: asset.decimals };
  return { token, units, assetType: assetType(asset.standard, token, units.quantum) };
}

function sessionOf(client: MintmarkClient, { owner, key }: Parties, signal: AbortSignal) {
  const path = { ownerAddress: owner, keyAddress: key };
  const route = "/api/v1/session-keys/{ownerAddress}/{keyAddress}";
  return answer(client.GET(route, { params: { path }, signal }));
}

/** The session's status at the server. Rejects if the server is of another contract. */
async function statusOf(
  client: MintmarkClient,
  { settlement }: Chain,
  parties: Parties,
  signal: AbortSignal,
) {
  const { status, revocation } = await sessionOf(client, parties, signal);
  const { chainId, contract } = settlement;
  if (revocation.to === contract && revocation.chainId === `${chainId}`) return status;
  const theirs = `${revocation.to} on chain ${revocation.chainId}`;
  throw new Error(
    `the server is of ${theirs}, not of ${contract} on chain ${chainId}: look at --url and --contract`,
  );
}

async function reached(
  wanted: Status,
  statusNow: () => Promise<Status>,
  { signal, progress }: Running,
): Promise<void> {
  for (;;) {
    const status = await statusNow();
    if (status === wanted) return;
    if (status === "revoked" || (status === "expired" && wanted === "active"))
      throw new Error(`the session is ${status}: ${ANOTHER}`);
    progress(
      status === "none" ? "the server has not read the block yet" : `the session is ${status}`,
    );
    await pause(POLL_MS, signal);
  }
}

function keyOf(text: unknown): Address {
  // The key stays out of the error, which may be logged.
  if (/^(?:0x)?[0-9a-fA-F]{64}$/.test(String(text)))
    throw new UsageError(
      "<key>: give the key's address. Others can have read this private key, so make another one",
    );
  return inputs.addressOf(
    text,
    "<key>",
    "give the address of the key, which `mintmark session key` prints",
  );
}

/** Seconds since 1970 as times, for people. */
function readable(session: object, { json }: Options): object {
  if (json === true) return session;
  return Object.fromEntries(
    Object.entries(session).map(([name, value]) => {
      const isTime =
        ["authorizedAt", "until", "revokedAt"].includes(name) && Number(value) <= LAST_SECOND;
      return [
        name,
        isTime && value !== null ? new Date(Number(value) * 1_000).toISOString() : value,
      ];
    }),
  );
}
