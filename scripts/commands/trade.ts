import type { Hash } from "../../core/index.ts";
import * as api from "../../server/client/index.ts";
import { sessionSettings } from "../../server/process/settings/process-settings.ts";
import {
  addressOf,
  clientOf,
  EXAMPLE_ASSET,
  partOf,
  processAccount,
  secondsOf,
  textOf,
  tokensOf,
} from "../cli/arguments.ts";
import { command } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";
import { chainOf } from "../cli/l1.ts";

const VAULT = "9223372036854775808";
const ORDER = "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a12";
const NOTES =
  "The owner's key is read from MINTMARK_OWNER_KEY or standard input, and signs; the application sends the message" +
  "\nby MINTMARK_API_KEY.";
const COLUMNS = [
  "orderId",
  "status",
  "vaultId",
  "give.amount",
  "give.symbol",
  "give.tokenId",
  "want.amount",
  "want.symbol",
  "want.tokenId",
  "deadline",
];

export const sell = command({
  examples: [
    `sell ${VAULT} --asset ${EXAMPLE_ASSET} --for 250 < owner.key`,
    `sell ${VAULT} --amount 12.5 --asset ${EXAMPLE_ASSET} --token-id 7 --for 1 < owner.key`,
  ],
  required: {
    "--asset <id>": "the asset that the owner wants",
    "--for <tokens>": "whole tokens of it, such as 250, fee and royalty included",
  },
  options: {
    "--token-id <id>": "of an ERC-721 or ERC-1155 token that the owner wants",
    "--amount <tokens>":
      "whole tokens of the vault to give, such as 12.5; default all that is left",
    "--units <number>": "in the place of --amount: units, as the API counts them",
    "--taker <address>": "the only owner who can take it; default anybody",
    "--deadline <time>": "when it ends, such as 12h; default 7d",
    "--wait": "wait until the vault's batch is final on L1, if it is not yet",
    "--url <url>": "the server's address (MINTMARK_URL)",
  },
  notes: NOTES,
  columns: COLUMNS,
  async work({ options, args: [vaultId = ""], signal }) {
    const { client } = await clientOf(options);
    const { account } = await processAccount("OWNER");
    const assetId = String(options.asset);
    const asset = await api.answer(
      client.GET("/api/v1/assets/{assetId}", { params: { path: { assetId } }, signal }),
    );
    const units = { quantum: BigInt(asset.quantum), decimals: asset.decimals };
    const part = await partOf(options, async () => {
      const params = { path: { vaultId } };
      const vault = await api.answer(client.GET("/api/v1/vaults/{vaultId}", { params, signal }));
      return { quantum: BigInt(vault.quantum), decimals: vault.decimals };
    });
    const tokenId = textOf(options.tokenId);
    const { taker, deadline } = options;
    return api.sell(client, {
      vaultId,
      want: {
        assetId,
        amount: `${tokensOf(options.for, "--for", units)}`,
        ...(tokenId !== undefined && { tokenId }),
      },
      signer: account,
      ...(part !== undefined && { amount: `${part}` }),
      ...(taker !== undefined && { taker: addressOf(taker, "--taker") }),
      ...(deadline !== undefined && { deadline: `${secondsOf(deadline, "--deadline")}` }),
      wait: options.wait === true,
      signal,
    });
  },
});

export const buy = command({
  examples: [`buy ${ORDER} --wait < owner.key`, `buy ${ORDER} --vault ${VAULT} < owner.key`],
  options: {
    "--vault <id>": "the vault to pay with; default the owner's first one that has enough",
    "--wait": "wait until the paying vault is final on L1, and then until both sides are settled",
    "--url <url>": "the server's address (MINTMARK_URL)",
  },
  notes: NOTES,
  columns: COLUMNS,
  failed: ({ status, failure }: api.Order) =>
    status === "stale" ? `the order could not be settled, and nothing moved: ${failure}` : null,
  async work({ options, args: [orderId = ""], signal, progress }) {
    const { client } = await clientOf(options);
    const { account } = await processAccount("OWNER");
    const vaultId = textOf(options.vault);
    return api.buy(client, {
      orderId,
      ownerAddress: account.address,
      ...(vaultId !== undefined && { vaultId }),
      signer: account,
      wait: options.wait === true,
      signal,
      onStatus: ({ orderId: id, status }) => progress(`order ${id}: ${status}`),
    });
  },
});

const STATUSES = ["open", "filled", "settled", "cancelled", "stale", "expired"] as const;

export const orders = command({
  examples: ["orders", `orders --asset ${EXAMPLE_ASSET} --want ${EXAMPLE_ASSET} --cheapest`],
  options: {
    "--status <status>": `one of ${STATUSES.join(", ")}; default open`,
    "--asset <id>": "the asset that is offered",
    "--want <id>": "the asset that is wanted",
    "--cheapest": "the lowest price first; with --asset and --want",
    "--url <url>": "the server's address (MINTMARK_URL)",
  },
  notes: "Needs MINTMARK_API_KEY. Prints the first 100.",
  columns: COLUMNS,
  async work({ options, signal }) {
    const { client } = await clientOf(options);
    const { status: asked = "open", asset, want } = options;
    const status = STATUSES.find((each) => each === asked);
    if (status === undefined) throw new UsageError(`--status: give one of ${STATUSES.join(", ")}`);
    const query = {
      status,
      limit: 100,
      ...(asset !== undefined && { assetId: String(asset) }),
      ...(want !== undefined && { wantAssetId: String(want) }),
      ...(options.cheapest === true && { sort: "price" as const }),
    };
    const call = client.GET("/api/v1/orders", { params: { query }, signal });
    return (await api.answer(call)).data;
  },
});

export const cancelOrder = command({
  examples: [`cancel-order ${ORDER}`],
  options: { "--url <url>": "the server's address (MINTMARK_URL)" },
  notes:
    "Needs MINTMARK_API_KEY. The server lists the order no longer; whoever has its signature can still bring it to L1.",
  columns: COLUMNS,
  async work({ options, args: [orderId = ""], signal }) {
    const { client } = await clientOf(options);
    const params = { path: { orderId } };
    return api.answer(client.DELETE("/api/v1/orders/{orderId}", { params, signal }));
  },
});

export const cancel = command({
  examples: [
    "cancel 0x5f3a… --rpc https://rpc.example --contract 0x… < owner.key",
    `cancel ${VAULT} --rpc https://rpc.example --contract 0x… < owner.key`,
  ],
  settings: sessionSettings,
  notes:
    "The account that has signed pays: MINTMARK_OWNER_KEY, or standard input. `mintmark orders --json` prints digests." +
    "\nA vault's id takes back all that the account has signed of the vault, and ever signs: only its own transactions" +
    "\nwithdraw it then.",
  async work({ args: [named = ""], signal, progress }, settings) {
    const isDigest = /^0x[0-9a-fA-F]{64}$/.test(named);
    if (!isDigest && !/^\d{1,20}$/.test(named))
      throw new UsageError("<id>: give 0x and 64 hex digits, or a vault's id");
    const id = isDigest ? (named.toLowerCase() as Hash) : BigInt(named);
    const { account } = await processAccount("OWNER");
    const { connectL1 } = await import("../../core/l1/index.ts");
    const l1 = await connectL1({ ...chainOf(settings), account });
    const onSent = (sent: Hash) => progress(`sent transaction ${sent}`);
    const { txHash } = await l1.cancel(id, { signal, onSent });
    return { id, signer: account.address.toLowerCase(), txHash };
  },
});
