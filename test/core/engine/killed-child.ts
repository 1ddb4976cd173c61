import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { deserialize, serialize } from "node:v8";
import { contextOf } from "../../../core/engine.ts";
import { type Address, type L1Event, MODES, openEngine } from "../../../core/index.ts";
import { FillSender, type L1Trader, ordersOf } from "../../../core/orders/index.ts";
import type { MadeVault } from "../../../core/ports.ts";
import { type OrderMessage, orderTypedData, packVaultId } from "../../../core/protocol/index.ts";
import { lower } from "../../../scripts/deploy/deployer.ts";
import { hashOf, mintingBlobOf, mintOf, OWNERS, SETTLEMENT } from "./fixture.ts";
import { LIMITS, LONG } from "./kill.ts";
import { committed, HOME, made, withdrawn } from "./l1-fixture.ts";
import { signedTransfers } from "./transfers-fixture.ts";

/**
 * The process that is killed: mints as fast as it can over the LevelDB folder given, single mints
 * and requests beside each other, into blobs, calldata and validium. It says on its output which
 * requests were acknowledged, one `ack <round>.<request> <vault id>,…` a line. Ids are told apart
 * by round.
 *
 * Beside that an owner mints items, gives them away once they are final, and the lists go into
 * batches. It says which were taken: `gave <transfer id>` a line. Two more bring items back from L1
 * and trade them: `entered <making>`, `listed`, `filled` and `settled <order id>`.
 */
const [path = "", token = "", round = "0", userId = "", erc721 = "", erc20 = "", erc1155 = ""] =
  process.argv.slice(2);
const engine = await openEngine({
  store: path,
  createIfMissing: true,
  settlement: SETTLEMENT,
  environment: "sandbox",
  limits: LIMITS,
});
engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
const principal = await engine.keys.authenticate(token);
process.stdout.write("open\n");

let next = 0;
async function caller(size: number): Promise<never> {
  for (;;) {
    const request = next++;
    const mode = request % 3 === 0 ? "zk-rollup" : "validium";
    // No minting blob holds a long text.
    const end = request % 2 === 0 ? "" : LONG;
    const tokens = Array.from({ length: size }, (_, i) =>
      mintOf(erc721, `${round}-${request}-${i}${end}`, 1, mode),
    );
    const mints = [...tokens, mintOf(erc20, "", request + 1, mode)];
    const { transactions } = await engine.mint(principal, { users: [{ userId, mints }] });
    process.stdout.write(
      `ack ${round}.${request} ${size} ${transactions.map(({ vaultId }) => vaultId).join(",")}\n`,
    );
  }
}

let l1: Promise<unknown> = Promise.resolve();
/** L1's next block, after those before it. */
function inBlock<T>(work: () => Promise<T>): Promise<T> {
  const done = l1.then(work);
  l1 = done.catch(() => {});
  return done;
}

/** L1's own record of makings and trades: what was on the chain stays there when a server dies. */
const CHAIN = `${path}.l1`;

/** Applies a block of L1, which is final. */
async function hearBlock(block: bigint, events: readonly L1Event[]): Promise<void> {
  await engine.operator.recordEvents(HOME, events, block, { finalized: block });
  await engine.operator.recordFinalized(HOME, block);
}

/** L1 makes vaults, in place of those that it takes. */
function make(vaults: readonly MadeVault[], taken: readonly MadeVault[], ids: readonly bigint[]) {
  return inBlock(async () => {
    const block = (engine.operator.portals()[0]?.observed ?? 0n) + 1n;
    const making = contextOf(engine).ledger.batches.makings.count(null) + 1;
    const events: L1Event[] = taken.map(({ amount, owner }, i) =>
      withdrawn(ids[i] ?? 0n, amount, amount, owner, block, i),
    );
    events.push({ ...made(making, vaults, block), logIndex: taken.length });
    appendFileSync(CHAIN, `${serialize({ block, events }).toString("base64")}\n`);
    await hearBlock(block, events);
    return making;
  });
}

/** The block that the process before may not have heard of when it was killed. */
async function hearLast(): Promise<void> {
  const last = existsSync(CHAIN) ? readFileSync(CHAIN, "utf8").trim().split("\n").at(-1) : "";
  if (!last) return;
  const { block, events } = deserialize(Buffer.from(last, "base64"));
  if (block > (engine.operator.portals()[0]?.observed ?? 0n)) await hearBlock(block, events);
}

/** L1 as the sender of fills sees it: it settles everything. */
const trader: L1Trader = {
  blockNumber: async () => engine.operator.portals()[0]?.observed ?? 0n,
  checkTrade: async () => null,
  async settle(trades, options) {
    const txHash = hashOf(Number(trades[0]?.taker.order.vaultId ?? 0n) % 1_000_000_007);
    await options?.onSent?.(txHash);
    for (const { maker, taker } of trades) {
      const taken = [maker.vault, taker.vault];
      const [sword, price] = [maker.vault, taker.vault];
      const swapped = [
        { ...price, owner: sword.owner },
        { ...sword, owner: price.owner },
      ];
      await make(
        swapped,
        taken,
        taken.map(({ vaultId }) => vaultId),
      );
    }
    const block = await trader.blockNumber();
    return { txHash, blockNumber: block, gasUsed: 1n, refusals: trades.map(() => null) } as never;
  },
};

async function tradersLoop(): Promise<never> {
  const { ledger } = contextOf(engine);
  const { assetType } = ledger.tenants.assets.named(erc1155, null) ?? {};
  const orders = ordersOf(engine);
  const sender = new FillSender({ engine, l1: trader });
  const [seller, buyer] = [OWNERS[0], OWNERS[1]];
  const sign = (order: OrderMessage, signer: typeof seller | typeof buyer) =>
    signer.signTypedData(orderTypedData(engine.settlement, order));
  for (let i = 1; ; i++) {
    const item = (owner: Address, id: number, amount: bigint) =>
      ({ owner: lower(owner), assetType, amount, mintingBlob: mintingBlobOf(id) }) as MadeVault;
    const making = await make(
      [item(seller.address, 2 * i, 5n), item(buyer.address, 2 * i + 1, 3n)],
      [],
      [],
    );
    process.stdout.write(`entered ${making}\n`);
    const [vaultId, purse] = [0, 1].map((slot) =>
      packVaultId({ mode: "made", batchNumber: making, slot }),
    ) as [bigint, bigint];
    const want = { assetId: erc1155, tokenId: BigInt(2 * i + 1), amount: 3n };
    const { order } = await orders.prepare(principal, { vaultId, want });
    const listed = { ...order, signature: await sign(order, seller) };
    const { orderId } = await orders.create(principal, listed);
    process.stdout.write(`listed ${orderId}\n`);
    const counter = await orders.prepareFill(principal, orderId, { vaultId: purse });
    const signature = await sign(counter.order, buyer);
    await orders.fill(principal, orderId, { ...counter.order, signature });
    process.stdout.write(`filled ${orderId}\n`);
    await sender.send();
    await sender.send();
    const { status } = await orders.get(principal.applicationId, orderId);
    process.stdout.write(`${status} ${orderId}\n`);
  }
}

/** L1 takes what is sealed, and it is final. */
async function settle(): Promise<void> {
  let block = engine.operator.portals()[0]?.observed ?? 0n;
  for (const mode of MODES) {
    const waiting = (await Array.fromAsync(engine.batches.list({ mode }))).reverse();
    for (const { status, batchNumber } of waiting) {
      if (status === "open") break;
      if (status !== "sealed" && status !== "submitted") continue;
      const event = await committed(engine, mode, batchNumber, ++block);
      await engine.operator.recordEvents(HOME, [{ ...event, sequence: block }], block);
    }
  }
  await engine.operator.recordFinalized(HOME, block);
}

async function giver(): Promise<never> {
  const clock = { now: Date.now(), read: () => Date.now() };
  const giver = OWNERS[Number(round) % OWNERS.length] as (typeof OWNERS)[0];
  const to = OWNERS[(Number(round) + 1) % OWNERS.length]?.address ?? giver.address;
  for (let i = 0; ; i++) {
    const mint = mintOf(erc1155, `9${round}0${i}`, 5);
    const { transactions } = await engine.mint(principal, { users: [{ userId, mints: [mint] }] });
    const vaultId = [...transactions][0]?.vaultId ?? 0n;
    await engine.operator.seal("validium");
    await inBlock(settle);
    const transfers = [{ vaultId, amount: BigInt(i % 3), to }];
    const request = await signedTransfers({ engine, clock }, transfers, { signer: giver });
    const { transferId } = await engine.transfers.request(principal, request);
    process.stdout.write(`gave ${transferId}\n`);
    // A batch in blobs may be sealed before it, which takes longer than a round.
    void engine.operator.sealTransfers().catch(() => {});
  }
}

await hearLast();
await Promise.all([...[1, 1, 1, 1, 7, 40].map(caller), giver(), tradersLoop()]);
