import { REQUEST, type World } from "../engine-workload.ts";

export interface Kind {
  readonly name: "bulk" | "singles";
  readonly mintsPerRequest: number;
  /** Connections at saturation, each with one request at a time. */
  readonly connections: number;
  readonly warmUp: number;
  /** Requests of one round at saturation, and number of rounds. */
  readonly round: number;
  readonly rounds: number;
  /** Seconds at half of the saturated rate. */
  readonly halfSeconds: number;
  /** Bytes that the store writes for a request before its answer, without sealing and compaction. */
  readonly writtenBytes: number;
}

export const KINDS: readonly Kind[] = [
  {
    ...{ name: "bulk", mintsPerRequest: REQUEST, connections: 16, writtenBytes: 31_000 },
    ...{ warmUp: 200, round: 300, rounds: 3, halfSeconds: 10 },
  },
  {
    ...{ name: "singles", mintsPerRequest: 1, connections: 256, writtenBytes: 300 },
    ...{ warmUp: 10_000, round: 20_000, rounds: 3, halfSeconds: 10 },
  },
];

/** The same kinds with a tenth of the requests, for trials. */
export const QUICK: readonly Kind[] = KINDS.map((kind) => {
  return { ...kind, warmUp: kind.warmUp / 10, round: kind.round / 10, rounds: 1, halfSeconds: 2 };
});

/** The input of the process that loads a server. Its output is the figures, by the keys of the table's columns. */
export interface LoadPlan {
  readonly port: number;
  readonly serverPid: number;
  readonly world: World;
  readonly kinds: readonly Kind[];
}
