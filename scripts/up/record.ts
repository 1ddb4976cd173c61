import { join } from "node:path";
import { z } from "zod";
import type { Uuid } from "../../core/index.ts";
import { recordPath } from "../deploy/record.ts";
import { jsonText, textIn, writeWhole } from "../files.ts";
import type { Network } from "./networks.ts";
import type { GivenAnswers } from "./terms.ts";

const uuid = z.guid().transform((text) => text as Uuid);
const wei = z.string().regex(/^\d+$/).transform(BigInt);
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
  /** What the store has. */
  seeded: z
    .strictObject({ applicationId: uuid, assets: z.array(z.strictObject({ symbol: z.string(), assetId: uuid })) })
    .nullable()
    .default(null),
});

/** What `mintmark up` has done so far. It holds no key and no address of a node. */
export type UpRecord = z.output<typeof upRecord>;

/** The record in a folder; undefined without one. Rejects for an invalid one. */
export async function readUp(folder: string): Promise<UpRecord | undefined> {
  const path = pathIn(folder);
  const text = await textIn(path);
  if (text === undefined) return undefined;
  const parsed = upRecord.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${path} is no record of mintmark up: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
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
  /** The terms of a new deployment, when none are given. */
  readonly ask: () => Promise<GivenAnswers>;
  readonly allow: (question: string) => Promise<boolean>;
  readonly say: (line: string) => void;
  readonly progress: (line: string) => void;
  readonly signal: AbortSignal;
  readonly pollMs: number;
}
