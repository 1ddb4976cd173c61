/**
 * `npm run check:optimizer`: compiles the contracts once more without each step of the optimizer
 * that a published bug of the compiler concerns, and shows what the step has changed.
 *
 * The Yul optimizer of solc from 0.8.19 to 0.8.37 can keep an outdated idea of an address after a
 * variable is assigned again. Then `LoadResolver` may use an old value in place of a load, and
 * `EqualStoreEliminator` may remove a store that is needed. Identical code without the second shows
 * that it has removed no store. Without the first, more values are loaded and hashed, and each
 * store stays. That is compared without the inliner, which copies other functions as soon as their
 * sizes differ, with the stores in them. It shows where the step works, not that each value is the
 * present one.
 */
import { createRequire } from "node:module";
import { hexToBytes } from "viem";
import type { Artifact } from "../../core/l1/artifact.ts";
import { answerHelp } from "../cli/exit.ts";
import { print } from "../cli/output.ts";
import { compile, JOBS, settingsFor } from "./contracts.ts";

/** A letter stands for each step of a sequence. Both sides of a comparison lack `neither`. */
const STEPS = {
  E: { name: "EqualStoreEliminator", neither: "" },
  L: { name: "LoadResolver", neither: "i" },
} as const;
type Step = keyof typeof STEPS;

/** Opcodes whose number tells what a step has removed. */
const COUNTED = { sload: 0x54, mload: 0x51, keccak256: 0x20, sstore: 0x55, tstore: 0x5d } as const;
const [PUSH1, PUSH32] = [0x60, 0x7f];

/** A contract's code, compiled without a step. */
export interface Without {
  readonly contract: string;
  readonly without: string;
  readonly code: "identical" | "another";
  /** Bytes more than with the step. */
  readonly bytes: number;
  /** `sload 40→44` for each opcode whose number differs. */
  readonly opcodes: string;
}

/** Compares each contract of a job with itself without each step. Takes minutes for large ones. */
export function withoutSteps(job: (typeof JOBS)[number]): Without[] {
  // The code ends with a hash of the settings otherwise, which differ.
  const settings = { ...settingsFor(job.runs), metadata: { appendCBOR: false } };
  const compiled = (left: string) => {
    const kept = [...defaultSteps()].filter((letter) => !left.includes(letter));
    const details = { yulDetails: { optimizerSteps: kept.join("") } };
    return compile(job, { ...settings, optimizer: { ...settings.optimizer, details } });
  };
  return (Object.keys(STEPS) as Step[]).flatMap((step) => {
    const { neither } = STEPS[step];
    const [whole, other] = [compiled(neither), compiled(neither + step)];
    return whole.map((artifact, i) => compared(step, artifact, other[i] as Artifact));
  });
}

function compared(step: Step, whole: Artifact, other: Artifact): Without {
  const [before, after] = [whole, other].map(({ bytecode }) => countsIn(hexToBytes(bytecode)));
  const changed = Object.keys(COUNTED).flatMap((name) => {
    const [was, is] = [before?.get(name) ?? 0, after?.get(name) ?? 0];
    return was === is ? [] : [`${name} ${was}→${is}`];
  });
  return {
    contract: whole.contractName,
    without: STEPS[step].name,
    code: whole.bytecode === other.bytecode ? "identical" : "another",
    bytes: (other.bytecode.length - whole.bytecode.length) / 2,
    opcodes: changed.join(", "),
  };
}

function countsIn(code: Uint8Array): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (let at = 0; at < code.length; at++) {
    const opcode = code[at] ?? 0;
    for (const [name, value] of Object.entries(COUNTED))
      if (opcode === value) counts.set(name, (counts.get(name) ?? 0) + 1);
    // The bytes that it pushes are no opcodes.
    if (opcode >= PUSH1 && opcode <= PUSH32) at += opcode - PUSH1 + 1;
  }
  return counts;
}

/**
 * The compiler's own sequence. It tells the sequence only of settings that are not the default's,
 * so one is, which has nothing to do with the sequence.
 */
function defaultSteps(): string {
  const { compile: solc } = createRequire(import.meta.url)("solc") as {
    compile(input: string): string;
  };
  const settings = {
    ...settingsFor(200),
    optimizer: { enabled: true, details: { peephole: false } },
    outputSelection: { "*": { "*": ["metadata"] } },
  };
  const sources = { "a.sol": { content: "contract A {}" } };
  const output = JSON.parse(solc(JSON.stringify({ language: "Solidity", sources, settings })));
  const { metadata } = output.contracts["a.sol"].A;
  return JSON.parse(metadata).settings.optimizer.details.yulDetails.optimizerSteps;
}

if (import.meta.main) {
  answerHelp(
    "Usage: npm run check:optimizer [-- CONTRACT…]\n\nCompiles contracts without the steps of the optimizer that a known bug concerns, and compares. Default: all, in some minutes.\n",
  );
  const names = process.argv.slice(2);
  const jobs = JOBS.filter(
    ({ sources }) => names.length === 0 || names.some((name) => name in sources),
  );
  const rows = jobs.flatMap((job) => {
    process.stderr.write(`compiling ${Object.keys(job.sources).join(" and ")} four times\n`);
    return withoutSteps(job);
  });
  print(rows, false);
  const isSuspect = rows.some(
    ({ without, code }) => without === STEPS.E.name && code === "another",
  );
  if (isSuspect) process.exitCode = 1;
}
