import { readdir, readFile } from "node:fs/promises";
import type { Profiler } from "node:inspector";
import { join } from "node:path";

const PARSE = "parse the body";

/** The stages of a server's work, by file, or by function name where there is none. */
const STAGES: readonly (readonly [stage: string, whose: RegExp])[] = [
  ["rows of drops", /\/core\/drops\/|\/csv-parse\//],
  ["events to followers", /\/server\/routes\/events\.ts|\/core\/(events|ledger\/followers)/],
  ["answer verify", /\/core\/verify\//],
  [
    "write to the socket",
    /^node:(_http_outgoing|internal\/stream_base_commons)|^write(Utf8String|Latin1String|Buffer|v) /,
  ],
  [PARSE, /\/server\/http\/wire\/body\.ts|\/core\/mint\/json\.ts/],
  [
    "check the key",
    /\/(routes\/api\/authentication|http\/access\/access-token)\.ts|\/core\/tenants\/api-keys\.ts/,
  ],
  ["count its rate and memory", /\/server\/http\/access\//],
  [
    "make the answer",
    /\/server\/(http\/wire\/|routes\/mint-answer\.ts)|\/core\/mint\/mint-results\.ts/,
  ],
  ["read the request's columns", /\/core\/(mint\/(reader|form)|store\/mint-columns)\.ts|\/zod\//],
  ["write to the store", /\/core\/store\/|\/(classic-level|abstract-level)\//],
  ["seal", /\/core\/(sealing|protocol)\//],
  ["check and place", /\/core\//],
  ["log", /\/server\/http\/(request-)?log\.ts|\/pino\//],
  ["routes and hooks", /\/server\/|\/(fastify|find-my-way)\//],
  ["read from the socket", /^node:(_http|net|internal\/streams|events)/],
];
const COLLECTION = "collect garbage";
const REST = "the rest";
export const STAGE_NAMES = [...STAGES.map(([stage]) => stage), COLLECTION, REST];

/**
 * The share of each stage in a process's busy time, in percent, from the CPU profile of its main
 * thread in a folder. Each sample counts for the innermost function of a stage, from the first
 * parsed body to the last.
 */
export async function stageShares(folder: string): Promise<Readonly<Record<string, number>>> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".cpuprofile"));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  // The sealing threads leave profiles too. Only the main thread's profile contains HTTP.
  const text = texts.find((each) => each.includes("node:_http_server"));
  if (text === undefined) throw new Error("the server left no CPU profile");
  const profile = JSON.parse(text) as Profiler.Profile;
  const { samples = [], timeDeltas = [] } = profile;
  const stageOf = stagesIn(profile);
  const times = new Map(STAGE_NAMES.map((stage) => [stage, 0]));
  const stages = samples.map((sample) => stageOf.get(sample) ?? null);
  const [first, last] = [stages.indexOf(PARSE), stages.lastIndexOf(PARSE)];
  let busy = 0;
  for (let i = first; i <= last; i++) {
    const stage = stages[i] ?? null;
    const time = Math.max(0, timeDeltas[i] ?? 0);
    if (stage === null) continue;
    times.set(stage, (times.get(stage) ?? 0) + time);
    busy += time;
  }
  return Object.fromEntries([...times].map(([stage, time]) => [stage, (100 * time) / busy]));
}

/** The stage of each node of a CPU profile, by its id; null for idle time. */
export function stagesIn({ nodes }: Profiler.Profile): ReadonlyMap<number, string | null> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const stageOf = new Map<number, string | null>();
  const visit = (id: number, above: string): void => {
    const { callFrame, children = [] } = byId.get(id) ?? {
      callFrame: { functionName: "", url: "" },
    };
    const { functionName, url } = callFrame;
    const stage =
      STAGES.find(([, whose]) => whose.test(url === "" ? `${functionName} ` : url))?.[0] ?? above;
    const isIdle = functionName === "(idle)" || functionName === "(program)";
    stageOf.set(id, isIdle ? null : functionName === "(garbage collector)" ? COLLECTION : stage);
    for (const child of children) visit(child, stage);
  };
  const inner = new Set(nodes.flatMap(({ children = [] }) => children));
  for (const { id } of nodes) if (!inner.has(id)) visit(id, REST);
  return stageOf;
}
