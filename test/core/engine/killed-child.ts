import { openEngine } from "../../../core/index.ts";
import { mintOf, SETTLEMENT } from "./fixture.ts";
import { LIMITS, LONG } from "./kill.ts";

/**
 * The process that is killed: mints as fast as it can over the LevelDB folder given, single mints and requests beside
 * each other, into blobs, calldata and validium. It says on its output which requests were acknowledged, one
 * `ack <round>.<request> <vault id>,…` a line. Ids are told apart by round.
 */
const [path = "", token = "", round = "0", userId = "", erc721 = "", erc20 = ""] = process.argv.slice(2);
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
    const tokens = Array.from({ length: size }, (_, i) => mintOf(erc721, `${round}-${request}-${i}${end}`, 1, mode));
    const mints = [...tokens, mintOf(erc20, "", request + 1, mode)];
    const { transactions } = await engine.mint(principal, { users: [{ userId, mints }] });
    process.stdout.write(`ack ${round}.${request} ${size} ${transactions.map(({ vaultId }) => vaultId).join(",")}\n`);
  }
}

await Promise.all([1, 1, 1, 1, 7, 40].map(caller));
