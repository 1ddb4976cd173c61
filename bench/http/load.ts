import { REQUEST, Workload, type World } from "../engine-workload.ts";

/** A kind of request to measure, with its size and the amount of work for a figure. */
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

export interface LoadFigures {
  /** Requests a second at saturation. */
  readonly rate: number;
  /** CPU time of the server's process, all threads, µs a request, at saturation. */
  readonly serverCpu: number;
  /** Milliseconds at half of that rate, from the time when a request was due. */
  readonly p50: number;
  readonly p99: number;
}

/** The input of the process that loads a server. */
export interface LoadPlan {
  readonly port: number;
  readonly serverPid: number;
  readonly world: World;
  readonly kinds: readonly Kind[];
}

/** Its output: the figures of each kind. */
export type LoadResult = Readonly<Partial<Record<Kind["name"], LoadFigures>>>;

/** Makes bodies of mint requests without repeated tokens, before the clock starts. */
export type Bodies = (kind: Kind, count: number) => readonly Buffer[];

export function bodiesOf(world: World): Bodies {
  const workload = new Workload(world);
  return ({ name }, count) => {
    const request = () => (name === "bulk" ? workload.bulk() : workload.single());
    return Array.from({ length: count }, () => Buffer.from(JSON.stringify(request())));
  };
}
