import { openEngine } from "../../../core/index.ts";
import { mintOf, SETTLEMENT } from "./fixture.ts";

/**
 * A process that opens a store and mints one token after the other, until standard input ends. It
 * says `open`, `ack <token>` of each acknowledged one, and `refused <code> <message>` at the end.
 */
const [store = "", token = "", userId = "", assetId = "", first = "0"] = process.argv.slice(2);
process.stdin.on("data", () => {}).on("end", () => process.exit(0));
try {
  const engine = await openEngine({ store, settlement: SETTLEMENT, environment: "sandbox" });
  process.stdout.write("open\n");
  const principal = await engine.keys.authenticate(token);
  for (let id = Number(first); ; id++) {
    await engine.mint(principal, { users: [{ userId, mints: [mintOf(assetId, id)] }] });
    process.stdout.write(`ack ${id}\n`);
  }
} catch (error) {
  const { code, message } = error as { readonly code: string; readonly message: string };
  process.stdout.write(`refused ${code} ${message}\n`);
}
process.exit(0);
