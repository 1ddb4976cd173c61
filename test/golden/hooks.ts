/**
 * Makes this process a build of a made-up next version: `node --import ./test/golden/hooks.ts …`.
 * Its step from today's format writes a record for each user. With `TEST_DIE=step` the process dies
 * when it prepares the step.
 */
import { registerHooks } from "node:module";

const STEP = `const STEPS = {
  11: async (store) => {
    globalThis.mintmarkStep?.();
    const made = [];
    for await (const [key, value] of store.entries({ gte: Buffer.from([0x14]), lt: Buffer.from([0x15]) }))
      made.push({ type: "put", key: Buffer.concat([Buffer.from([0xee]), key]), value });
    return made;
  },
};`;
const CHANGES = [
  ["FORMAT_VERSION = 11;", "FORMAT_VERSION = 12;"],
  [/\$\{packageJson.version\}/, "1.1.0"],
  [/^const STEPS.*$/m, STEP],
] as const;

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith("/core/store/format.ts")) return loaded;
    let source = String(loaded.source);
    for (const [from, to] of CHANGES) {
      const changed = source.replace(from, () => to);
      if (changed === source) throw new Error(`format.ts lacks ${from}`);
      source = changed;
    }
    return { ...loaded, source };
  },
});
if (process.env.TEST_DIE === "step")
  Object.assign(globalThis, { mintmarkStep: () => process.kill(process.pid, "SIGKILL") });
