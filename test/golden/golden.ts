import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { attestationRequestTypedData } from "../../core/committee/member-service.ts";
import { consentRequestTypedData } from "../../core/issuer/remote-issuer.ts";
import { consentTypedData } from "../../core/protocol/consent.ts";
import {
  sessionEndTypedData,
  sessionTypedData,
  transferBatchTypedData,
  transfersTypedData,
} from "../../core/protocol/transfer.ts";
import {
  cancellationTypedData,
  claimTypedData,
  mirroredStateTypedData,
  validiumBatchTypedData,
  withdrawalListTypedData,
} from "../../core/protocol/typed-data.ts";
import packageJson from "../../package.json" with { type: "json" };

/** The files that 1.0 made. */
export const GOLDEN = fileURLToPath(new URL("./1.0/", import.meta.url));

/** The typed data that is signed with each name in `messages.json`. */
export const MESSAGES = {
  validiumBatch: validiumBatchTypedData,
  transferBatch: transferBatchTypedData,
  attestationRequest: attestationRequestTypedData,
  consent: consentTypedData,
  consentRequest: consentRequestTypedData,
  mirroredState: mirroredStateTypedData,
  withdrawalList: withdrawalListTypedData,
  cancellation: cancellationTypedData,
  claim: claimTypedData,
  transfers: transfersTypedData,
  session: sessionTypedData,
  sessionEnd: sessionEndTypedData,
};

/**
 * The secrets of the deliveries in `deliveries.json`: the new one and the old one of a rotation.
 */
export const WEBHOOK_SECRETS = ["new", "old"].map(
  (word) => `whsec_${Buffer.from(word.repeat(8)).toString("base64")}`,
);

/** JSON in which a bigint is text such as "12n". */
export function textOf(value: unknown): string {
  const plain = (_: string, each: unknown) => (typeof each === "bigint" ? `${each}n` : each);
  return `${JSON.stringify(value, plain, 1)}\n`;
}

/** A value as {@link textOf} wrote it. */
export function valueFrom<T>(text: string): T {
  return JSON.parse(text, (_, each) =>
    typeof each === "string" && /^-?\d+n$/.test(each) ? BigInt(each.slice(0, -1)) : each,
  );
}

/** Names that can be imported from each subpath of the package, types apart. */
export async function exportedNames(): Promise<Record<string, string[]>> {
  const names: Record<string, string[]> = {};
  for (const [path, source] of Object.entries(packageJson.exports)) {
    names[path] = Object.keys(
      (await import(/* @vite-ignore */ new URL(`../../${source}`, import.meta.url).href)) as object,
    ).sort();
  }
  return names;
}

/** The sentence of docs/stability.md for one of its rows. */
export function promise(what: string): string {
  const page = readFileSync(new URL("../../docs/stability.md", import.meta.url), "utf8");
  const row = page.split("\n").find((line) => line.startsWith(`| ${what} |`));
  if (row === undefined) throw new Error(`docs/stability.md has no row "${what}"`);
  return `This breaks a promise of docs/stability.md: ${row.slice(2, -2)}`;
}
