/**
 * `npm run build:contracts`: compiles the contracts that are deployed into contracts/compiled/, and
 * writes core/l1/abi.ts and core/protocol/contract-code.ts. All are tracked, so that only those who
 * change a contract compile it.
 */
import { execSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { posix } from "node:path";
import type { CompilerOutput } from "hardhat/types/solidity";
import { type Abi, keccak256, size } from "viem";
import { type Artifact, type ContractName, readArtifact } from "../../core/l1/artifact.ts";
import { answerHelp } from "../cli/exit.ts";

const ROOT = new URL("../../", import.meta.url);
const require = createRequire(import.meta.url);
const COMPILED = new URL("contracts/compiled/", ROOT);

/**
 * Deployed contracts, with a run of the compiler for each job. Higher `runs` makes code cheaper to
 * run, and larger.
 */
export const JOBS: readonly {
  readonly sources: Partial<Record<ContractName, string>>;
  readonly runs: number;
}[] = [
  {
    // The contract's constructor creates its administration, so both have the same settings.
    sources: {
      StateCommitment: "contracts/StateCommitment.sol",
      Administration: "contracts/state/Administration.sol",
    },
    // More would leave the constructor no room for 64 members, EIP-3860.
    runs: 1_900,
  },
  { sources: { Transfers: "contracts/state/Transfers.sol" }, runs: 1_000_000 },
  { sources: { Makings: "contracts/state/Makings.sol" }, runs: 7_000 },
  { sources: { StateMirror: "contracts/StateMirror.sol" }, runs: 200 },
  { sources: { AdminTimeLock: "contracts/AdminTimeLock.sol" }, runs: 200 },
  { sources: { MintableERC20: "contracts/tokens/MintableERC20.sol" }, runs: 200 },
  { sources: { MintableERC721: "contracts/tokens/MintableERC721.sol" }, runs: 200 },
  { sources: { MintableERC1155: "contracts/tokens/MintableERC1155.sol" }, runs: 200 },
  {
    // The factory creates the escrows, so all have the same settings.
    sources: {
      EscrowFactory: "contracts/tokens/EscrowFactory.sol",
      EscrowERC20: "contracts/tokens/EscrowERC20.sol",
      EscrowERC721: "contracts/tokens/EscrowERC721.sol",
    },
    runs: 1_000_000,
  },
];
type Job = (typeof JOBS)[number];

export function settingsFor(runs: number) {
  return { viaIR: true, optimizer: { enabled: true, runs }, evmVersion: "osaka" };
}

type Sources = Readonly<Record<string, string>>;

/** The interface of a contract whose fallback runs other code too, as its callers see it. */
export function wholeInterface(own: Abi, lent: Abi): Abi {
  const items = new Map(own.map((item) => [JSON.stringify(item), item]));
  for (const item of lent) if (item.type !== "constructor") items.set(JSON.stringify(item), item);
  return [...items.values()];
}

/**
 * The names of the contracts whose tracked code is not that of the present sources and settings.
 */
export function staleContracts(): ContractName[] {
  return JOBS.filter((job) => !isCurrent(job)).flatMap(namesOf);
}

function isCurrent(job: Job): boolean {
  const hash = hashOf(job, sourcesOf(job));
  return namesOf(job).every((name) => existsSync(fileOf(name)) && readArtifact(name).hash === hash);
}

/** Compiles the contracts of one job, which takes up to half a minute. */
export function compile(job: Job, settings: object = settingsFor(job.runs)): Artifact[] {
  const sources = sourcesOf(job);
  const code = [
    "evm.bytecode.object",
    "evm.deployedBytecode.object",
    "evm.deployedBytecode.immutableReferences",
  ];
  const outputSelection = { "*": { "": ["ast"], "*": ["abi", ...code] } };
  const input = { ...standardInput(sources, job.runs), settings };
  const { compile: solc } = require("solc") as { compile(input: string): string };
  const text = JSON.stringify({ ...input, settings: { ...settings, outputSelection } });
  const output = JSON.parse(solc(text)) as CompilerOutput;
  for (const { severity, formattedMessage = "" } of output.errors ?? [])
    if (severity === "error" || !formattedMessage.includes("--> @"))
      process.stderr.write(`${formattedMessage}\n`);
  if (output.errors?.some(({ severity }) => severity === "error"))
    throw new Error("the contracts do not compile");
  const hash = hashOf(job, sources);
  return namesOf(job).map((contractName) => {
    const sourceName = job.sources[contractName] ?? "";
    const { abi, bytecode, deployedBytecode } = contractIn(output, sourceName, contractName);
    const { immutableReferences = {}, object } = deployedBytecode;
    const lent = contractName === "StateCommitment" ? LENT : [];
    const others = lent.flatMap(([source, name]) => contractIn(output, source, name).abi);
    return {
      contractName,
      sourceName,
      compiler: require("solc/package.json").version,
      settings,
      sources: Object.keys(sources),
      hash,
      abi: wholeInterface(abi, others),
      bytecode: `0x${bytecode.object}`,
      deployedBytecode: `0x${object}`,
      immutableReferences: named(immutableReferences, output),
    };
  });
}

const namesOf = ({ sources }: Job) => Object.keys(sources) as ContractName[];
const fileOf = (name: string) => new URL(`${name}.json`, COMPILED);

/** The contracts whose code the settlement contract's fallback runs, or their interface. */
export const LENT = [
  ["contracts/state/Administration.sol", "Administration"],
  ["contracts/interfaces/ITransfers.sol", "ITransfers"],
  ["contracts/interfaces/IMakings.sol", "IMakings"],
] as const;

/** The compiler's input for some sources: what explorers of chains take to verify a contract. */
function standardInput(sources: Sources, runs: number) {
  const content = Object.entries(sources).map(([name, content]) => [name, { content }]);
  return {
    language: "Solidity",
    sources: Object.fromEntries(content),
    settings: settingsFor(runs),
  };
}

function hashOf({ runs }: Job, sources: Sources): string {
  const input = { compiler: require("solc/package.json").version, ...standardInput(sources, runs) };
  return createHash("sha256").update(JSON.stringify(input)).digest("hex");
}

/** A job's sources and all that they import, by name. */
function sourcesOf(job: Job): Sources {
  const found = new Map<string, string>();
  const visit = (name: string) => {
    if (found.has(name)) return;
    const path = name.startsWith("@") ? new URL(`node_modules/${name}`, ROOT) : new URL(name, ROOT);
    const content = readFileSync(path, "utf8");
    found.set(name, content);
    for (const [, imported = ""] of content.matchAll(/^import\s[^"']*["']([^"']+)["']/gm))
      visit(imported.startsWith(".") ? posix.join(posix.dirname(name), imported) : imported);
  };
  for (const source of Object.values(job.sources)) visit(source);
  return Object.fromEntries([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function contractIn({ contracts }: CompilerOutput, source: string, name: string) {
  const found = contracts?.[source]?.[name];
  const { bytecode, deployedBytecode } = found?.evm ?? {};
  if (!bytecode || !deployedBytecode) throw new Error(`${source} has no contract ${name}`);
  return { abi: found?.abi as Abi, bytecode, deployedBytecode };
}

/** The compiler refers to immutable values by numbers of its own. */
function named(
  references: Artifact["immutableReferences"],
  { sources }: CompilerOutput,
): Artifact["immutableReferences"] {
  const names = new Map<string, string>();
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { mutability, id, name } = node as { mutability?: string; id?: number; name?: string };
    if (mutability === "immutable") names.set(String(id), String(name));
    for (const child of Object.values(node)) visit(child);
  };
  visit(sources);
  return Object.fromEntries(
    Object.entries(references).map(([id, places]) => [names.get(id) ?? id, places]),
  );
}

/** The texts of the generated files for the tracked code, by path. */
export function generatedFiles(): Readonly<Record<string, string>> {
  const linesOf = (name: ContractName) =>
    readArtifact(name).abi.map((item) => `  ${JSON.stringify(item)},`);
  const constants = {
    stateCommitmentAbi: "StateCommitment",
    stateMirrorAbi: "StateMirror",
  } as const;
  const [state, mirror] = [new Set(linesOf("StateCommitment")), new Set(linesOf("StateMirror"))];
  const shared = [...state].filter((line) => mirror.has(line));
  const common = `/** Both contracts have these. */\nconst common = [\n${shared.join("\n")}\n] as const;\n`;
  const abis = Object.entries(constants).map(([constant, name]) => {
    const own = linesOf(name).filter((line) => !shared.includes(line));
    return `/** The interface of \`${name}\`, as viem and ethers take it. */\nexport const ${constant} = [\n${own.join("\n")}\n  ...common,\n] as const;\n`;
  });
  const own = pinnedCode();
  const codes = PINNED.map((name) => `  ${name}: ${JSON.stringify(own[name])},`);
  const golden = new URL("test/golden/", ROOT);
  const kept = readdirSync(golden).map((release) => new URL(`${release}/contracts.json`, golden));
  const codeIn = (path: URL) => JSON.stringify(JSON.parse(readFileSync(path, "utf8")).code);
  const others = new Set(kept.filter(existsSync).map(codeIn));
  others.delete(JSON.stringify(own));
  const released = Array.from(others, (one) => `  ${one},\n`);
  const head = `// Generated by \`npm run build:contracts\`; a test holds it current. Do not edit.
// biome-ignore-all format: generated
// biome-ignore-all lint: generated

`;
  return {
    "core/l1/abi.ts": head + [common, ...abis].join("\n"),
    "core/protocol/contract-code.ts": `${head}/**
 * The code of each part: its hash with zeros for immutable values, where each of them has its 32
 * bytes, and the code that creates the contract, which the constructor's arguments follow.
 */
export const contractCode = {
${codes.join("\n")}
} as const;

/**
 * The code of one release: its contracts stay where they are, and every later version uses them.
 */
export type ReleasedCode = Readonly<Record<keyof typeof contractCode, {
  readonly bytes: number;
  readonly hash: string;
  readonly immutables: Readonly<Record<string, readonly number[]>>;
  readonly creation: { readonly bytes: number; readonly hash: string };
}>>;

/** This version's code, and that of each release with other contracts. */
export const knownContracts: readonly ReleasedCode[] = [
  contractCode,
${released.join("")}];
`,
  };
}

/** The contracts whose code is checked before they are used. */
const PINNED = [
  "StateCommitment",
  "Administration",
  "Transfers",
  "Makings",
  "StateMirror",
] as const;

/** The code of the contracts as they are tracked. `npm run golden` keeps it for each release. */
export function pinnedCode() {
  const code = PINNED.map((name) => [name, codeOf(readArtifact(name))]);
  return Object.fromEntries(code) as Record<(typeof PINNED)[number], ReturnType<typeof codeOf>>;
}

function codeOf({ bytecode, deployedBytecode, immutableReferences }: Artifact) {
  const places = Object.entries(immutableReferences).map(([name, all]) => [
    name,
    all.map(({ start }) => start),
  ]);
  return {
    bytes: size(deployedBytecode),
    hash: keccak256(deployedBytecode),
    immutables: Object.fromEntries(places),
    creation: { bytes: size(bytecode), hash: keccak256(bytecode) },
  };
}

if (import.meta.main) {
  answerHelp(
    "Usage: npm run build:contracts [-- --input NAME]\n\nCompiles the changed contracts of those that are deployed; with --input prints a contract's standard input.\n",
  );
  const [option, name] = process.argv.slice(2);
  const job = JOBS.find(({ sources }) => name !== undefined && name in sources);
  // The end of the program would cut what a pipe has not taken yet.
  if (option === "--input" && job !== undefined)
    process.stdout.write(`${JSON.stringify(standardInput(sourcesOf(job), job.runs))}\n`);
  else if (option === undefined) build();
  else throw new Error("usage: npm run build:contracts [-- --input NAME]");
}

/** Compiles what changed, writes the tracked files, and has Hardhat build its artifacts of them. */
function build(): void {
  const changed = JOBS.filter((one) => !isCurrent(one));
  for (const [index, one] of changed.entries()) {
    process.stderr.write(
      `compiling ${namesOf(one).join(" and ")} (${index + 1} of ${changed.length})\n`,
    );
    for (const artifact of compile(one))
      writeFileSync(fileOf(artifact.contractName), `${JSON.stringify(artifact, null, 1)}\n`);
  }
  const sources = Object.assign({}, ...JOBS.map(sourcesOf));
  writeFileSync(fileOf("sources"), `${JSON.stringify(sources, null, 1)}\n`);
  for (const [path, text] of Object.entries(generatedFiles()))
    writeFileSync(new URL(path, ROOT), text);
  execSync("hardhat build --quiet --no-tests", { stdio: "inherit" });
}
