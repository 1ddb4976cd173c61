import { writeFile } from "node:fs/promises";
import type { Archive } from "../../core/archive/index.ts";
import type { readL1 } from "../../core/l1/index.ts";
import { withTimeLeft } from "../../server/process/operator/time-left.ts";
import {
  exitKitSettings,
  rebuildSettings,
} from "../../server/process/settings/process-settings.ts";
import { textOf } from "../cli/arguments.ts";
import { command } from "../cli/command.ts";
import { messageOf } from "../cli/errors.ts";
import { UsageError } from "../cli/exit.ts";
import { chainOf, openLevel, sourcesOf } from "../cli/l1.ts";
import { exitKitText } from "./exit.ts";

/** Anybody can rebuild the public state from L1, without the server. */
export const rebuildCommand = command({
  examples: [
    "rebuild ./rebuilt --rpc https://rpc.example --contract 0x… --from-block 19000000 --peers https://member.example",
  ],
  settings: rebuildSettings.partial({ MINTMARK_STORE: true }),
  async work({ args: [folder], progress, signal }, settings) {
    const store = folder ?? rebuildSettings.shape.MINTMARK_STORE.parse(settings.MINTMARK_STORE);
    const [{ rebuild }, { readL1 }] = await Promise.all([
      import("../../core/archive/index.ts"),
      import("../../core/l1/index.ts"),
    ]);
    const l1 = await readL1(chainOf(settings));
    const timed = withTimeLeft(progress);
    let first: bigint | null = null;
    return withArchive(store, l1, (archive) =>
      rebuild({
        archive,
        l1,
        fromBlock: settings.MINTMARK_FROM_BLOCK,
        ...sourcesOf(settings),
        signal,
        onProgress({ block, toBlock, batches }) {
          first ??= block;
          const share = toBlock === first ? 1 : Number(block - first) / Number(toBlock - first);
          timed(`block ${block} of ${toBlock}, ${batches} batches`, share);
        },
        onFault: ({ name }, batchId, error) =>
          void process.stderr.write(`${name} did not give ${batchId}: ${messageOf(error)}\n`),
      }),
    );
  },
  failed: ({ missing }: { missing: readonly string[] }) =>
    missing.length === 0 ? null : "data is missing: name a source with --peers, and rebuild again",
});

export const exitKitCommand = command({
  examples: [
    "exit-kit 9223372036854775808 --store ./rebuilt --out sword.json",
    "exit-kit 7 --peers https://member.example",
  ],
  settings: exitKitSettings,
  options: {
    "--store <folder>": "a rebuilt store; without it the kit comes from L1 and --peers",
    "--out <file>": "the file to write; default standard output",
  },
  async work({ args: [id = ""], options }, settings) {
    if (!/^\d{1,20}$/.test(id)) throw new UsageError("name one vault by its id");
    const [vaultId, store, out] = [BigInt(id), textOf(options.store), textOf(options.out)];
    const [{ exportExitKit, proveFromL1 }, { readL1, readMirror }, { proofOnMirror }] =
      await Promise.all([
        import("../../core/exit/index.ts"),
        import("../../core/l1/index.ts"),
        import("../../core/mirror/index.ts"),
      ]);
    const l1 = await readL1(chainOf(settings));
    const {
      MINTMARK_FROM_BLOCK: fromBlock,
      MINTMARK_MIRROR_RPC_URL: rpc,
      MINTMARK_MIRROR: contract,
    } = settings;
    const proof =
      store === undefined
        ? await proveFromL1(vaultId, { l1, fromBlock, ...sourcesOf(settings) })
        : await withArchive(store, l1, (archive) => archive.vaultProof(vaultId));
    if ((rpc === undefined) !== (contract === undefined))
      throw new UsageError("give both --mirror-rpc and --mirror, or neither");
    const mirror =
      rpc === undefined || contract === undefined ? null : await readMirror({ rpc, contract });
    const kit = mirror
      ? await exportExitKit(await proofOnMirror(proof, mirror), mirror)
      : await exportExitKit(proof, l1, { fromBlock });
    if (out === undefined) return void process.stdout.write(exitKitText(kit));
    // Never replaces a file, which may be the only copy of another kit.
    await writeFile(out, exitKitText(kit), { flag: "wx" });
    process.stderr.write(`${out}: the contract has verified this kit\n`);
  },
});

async function withArchive<T>(
  folder: string,
  l1: Awaited<ReturnType<typeof readL1>>,
  work: (archive: Archive) => Promise<T>,
): Promise<T> {
  const { Archive } = await import("../../core/archive/index.ts");
  const archive = await Archive.open({ store: await openLevel(folder), l1 });
  try {
    return await work(archive);
  } finally {
    await archive.close();
  }
}
