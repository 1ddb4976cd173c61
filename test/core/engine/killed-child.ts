import { openEngine } from "../../../core/index.ts";
import { mintOf, SETTLEMENT } from "./fixture.ts";

/**
 * The process that is killed: mints as fast as it can over the LevelDB folder given, single mints and requests beside each other, and
 * says on its output which requests were acknowledged, one `ack <round>.<request> <vault id>,…` a line. Ids are told apart by round.
 */
const [path = "", token = "", round = "0", userId = "", erc721 = "", erc20 = ""] = process.argv.slice(2);
const engine = await openEngine({
  store: path,
  createIfMissing: true,
  settlement: SETTLEMENT,
  environment: "sandbox",
  limits: { batchVaults: { validium: 1_200, "zk-rollup": 200 } },
});
const principal = await engine.keys.authenticate(token);
process.stdout.write("open\n");

let next = 0;
async function caller(size: number): Promise<never> {
  for (;;) {
    const request = next++;
    const mode = request % 3 === 0 ? "zk-rollup" : "validium";
    const tokens = Array.from({ length: size }, (_, i) => mintOf(erc721, `${round}-${request}-${i}`, 1, mode));
    const mints = [...tokens, mintOf(erc20, "", request + 1, mode)];
    const { transactions } = await engine.mint(principal, { users: [{ userId, mints }] });
    process.stdout.write(`ack ${round}.${request} ${size} ${transactions.map(({ vaultId }) => vaultId).join(",")}\n`);
  }
}

await Promise.all([1, 1, 1, 1, 7, 40].map(caller));
