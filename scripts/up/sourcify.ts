import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import type { Address } from "../../core/index.ts";
import { type ContractName, readArtifact } from "../../core/l1/artifact.ts";

/** The compiler's whole version, which Sourcify asks for. A test compares it with the compiler. */
const COMPILER_VERSION = "0.8.37+commit.f401782d";

export interface Published {
  readonly name: ContractName;
  readonly address: Address;
}

const ticket = z.object({ verificationId: z.string().regex(/^[\w-]{1,100}$/) });
const match = z.string().nullish();
const job = z.object({
  isJobCompleted: z.boolean(),
  contract: z.object({ match }).nullish(),
  error: z.object({ customCode: z.string().optional(), message: z.string().optional() }).nullish(),
});
const known = z.object({ match });
const POLL_MS = 1_000;
const TIMEOUT_MS = 20_000;
const POLLS = 120;

/**
 * Publishes a contract's sources by Sourcify's HTTP interface, version 2
 * (https://docs.sourcify.dev/docs/api/), and resolves when they match. Rejects with one sentence
 * when the service cannot be reached or finds a difference.
 */
export async function publishSources(
  server: string,
  chainId: number,
  contract: Published,
  signal: AbortSignal,
) {
  const { name, address } = contract;
  const base = server.replace(/\/$/, "");
  const found = await ask(`${base}/v2/contract/${chainId}/${address}`, signal);
  if (found.status === 200 && known.parse(found.body).match) return;
  const { sourceName, contractName } = readArtifact(name);
  const asked = await ask(`${base}/v2/verify/${chainId}/${address}`, signal, {
    stdJsonInput: standardInputOf(name),
    compilerVersion: COMPILER_VERSION,
    contractIdentifier: `${sourceName}:${contractName}`,
  });
  // Somebody else has published the same sources meanwhile.
  if (asked.status === 409) return;
  if (asked.status !== 202)
    throw new Error(`Sourcify refused ${name} with ${asked.status}: ${saidBy(asked.body)}`);
  const { verificationId } = ticket.parse(asked.body);
  for (let left = POLLS; left > 0; left--) {
    const { body } = await ask(`${base}/v2/verify/${verificationId}`, signal);
    const { isJobCompleted, contract: found, error } = job.parse(body);
    if (isJobCompleted && found?.match) return;
    if (isJobCompleted)
      throw new Error(
        `Sourcify found no match for ${name}: ${error?.message ?? "no reason given"}`,
      );
    await pause(POLL_MS, undefined, { signal });
  }
  throw new Error(`Sourcify has not finished ${name}; run this again later`);
}

function standardInputOf(name: ContractName): unknown {
  const { sources: names, settings } = readArtifact(name);
  const path = new URL("../../contracts/compiled/sources.json", import.meta.url);
  const all = JSON.parse(readFileSync(path, "utf8")) as Record<string, string>;
  const sources = Object.fromEntries(names.map((source) => [source, { content: all[source] }]));
  return { language: "Solidity", sources, settings };
}

async function ask(
  url: string,
  signal: AbortSignal,
  body?: unknown,
): Promise<{ status: number; body: unknown }> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const post = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  try {
    const reply = await fetch(url, { signal: limit, ...(body !== undefined && post) });
    return { status: reply.status, body: await reply.json().catch(() => null) };
  } catch (error) {
    signal.throwIfAborted();
    throw new Error(`${new URL(url).host} cannot be reached`, { cause: error });
  }
}

function saidBy(body: unknown): string {
  const { message } = (body ?? {}) as { message?: unknown };
  return typeof message === "string" ? message.slice(0, 300) : "no reason given";
}
