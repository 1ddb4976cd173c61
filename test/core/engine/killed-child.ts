import { MODES, openEngine } from "../../../core/index.ts";
import { mintOf, OWNERS, SETTLEMENT } from "./fixture.ts";
import { LIMITS, LONG } from "./kill.ts";
import { committed, HOME } from "./l1-fixture.ts";
import { signedTransfers } from "./transfers-fixture.ts";

/**
 * The process that is killed: mints as fast as it can over the LevelDB folder given, single mints
 * and requests beside each other, into blobs, calldata and validium. It says on its output which
 * requests were acknowledged, one `ack <round>.<request> <vault id>,…` a line. Ids are told apart
 * by round.
 *
 * Beside that an owner mints items, gives them away once they are final, and the lists go into
 * batches. It says which were taken: `gave <transfer id>` a line.
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
    // No blob holds a long text.
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
    await settle();
    const transfers = [{ vaultId, amount: BigInt(i % 3), to }];
    const request = await signedTransfers({ engine, clock }, transfers, { signer: giver });
    const { transferId } = await engine.transfers.request(principal, request);
    process.stdout.write(`gave ${transferId}\n`);
    // A batch in blobs may be sealed before it, which takes longer than a round.
    void engine.operator.sealTransfers().catch(() => {});
  }
}

await Promise.all([...[1, 1, 1, 1, 7, 40].map(caller), giver()]);
