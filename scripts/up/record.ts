import { join } from "node:path";
import { z } from "zod";
import type { Uuid } from "../../core/index.ts";
import { recordIn, recordPath, integer as wei } from "../deploy/record.ts";
import { jsonText, writeWhole } from "../files.ts";
import type { Network } from "./networks.ts";
import type { GivenAnswers } from "./terms.ts";

const uuid = z.guid().transform((text) => text as Uuid);
const upRecord = z.strictObject({
  version: z.literal(1),
  chainId: z.int(),
  answers: z.unknown().transform((given) => given as GivenAnswers),
  /** Steps that are done, with the wei that each cost. */
  done: z.record(z.string(), wei),
  /** The step under way, and the deployer's wei before it. */
  begun: z.strictObject({ step: z.string(), balance: wei }).nullable(),
  /** Contracts whose sources are published. */
  published: z.array(z.string()).default([]),
  /** The application and assets that the store has. */
  seeded: z
    .strictObject({
      applicationId: uuid,
      assets: z.array(z.strictObject({ symbol: z.string(), assetId: uuid })),
    })
    .nullable()
    .default(null),
});

/** The steps that `mintmark up` has done so far. It holds no key and no address of a node. */
export type UpRecord = z.output<typeof upRecord>;

/** The record in a folder; undefined without one. Rejects for an invalid one. */
export function readUp(folder: string): Promise<UpRecord | undefined> {
  return recordIn(pathIn(folder), upRecord, "no record of mintmark up");
}

export async function writeUp(folder: string, record: UpRecord): Promise<void> {
  await writeWhole(pathIn(folder), jsonText(record), 0o600);
}

const pathIn = (folder: string) => join(folder, "up.json");

export function deploymentIn(folder: string, chainId: number): string {
  return recordPath(join(folder, "deployments"), chainId);
}

export interface UpOptions {
  readonly folder: string;
  readonly rpc: string;
  /** The network that was named; undefined for a URL. */
  readonly expected: Network | undefined;
  /** All that are known by name. */
  readonly known: readonly Network[];
  /** The base of Sourcify's HTTP interface. */
  readonly sourcify: string;
  /** The terms of `--answers`; undefined without it. */
  readonly given: GivenAnswers | undefined;
  /** The profile of a new deployment; default that of its terms. */
  readonly profile?: GivenAnswers["profile"];
  /** False when nobody is there to be asked: then the command must not need to ask. */
  readonly isAttended: boolean;
  /** The terms of a new deployment, when none are given. */
  readonly ask: (isSolo: boolean) => Promise<GivenAnswers>;
  readonly allow: (question: string) => Promise<boolean>;
  readonly say: (line: string) => void;
  readonly progress: (line: string) => void;
  readonly signal: AbortSignal;
  readonly pollMs: number;
}
