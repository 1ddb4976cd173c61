import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import type { Ways } from "./ledger-ways.ts";

/**
 * The most files that a way enters with the ledger, and the most steps that lead to a later room.
 * Take something away before you add to it: whoever reads the way goes back and forth as often.
 */
const MOST = {
  withdrawal: { heading: "A withdrawal", stays: 16, climbs: 4 },
  close: { heading: "A transfer", stays: 13, climbs: 4 },
} as const;

const ARCHITECTURE = readFileSync(
  fileURLToPath(new URL("../../../docs/architecture.md", import.meta.url)),
  "utf8",
);

/** The rooms of `core/`, earlier ones first. */
const ROOMS: readonly string[] = sectionOf("The rooms of `core/`").match(/(?<=^- `)[^`]+/gm) ?? [];

function sectionOf(heading: string): string {
  return ARCHITECTURE.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
}

function rankOf(file: string): number {
  const [first = "", inside] = file.split("/");
  return ROOMS.indexOf(inside === undefined ? first : `${first}/`);
}

/** The lines of architecture.md for functions that are called in this order. */
function staysOf(called: readonly string[]): string[] {
  const stays: { file: string; names: string[] }[] = [];
  for (const one of called) {
    const [path = "", name = ""] = one.split(" ");
    const file = path.slice("core/".length);
    const last = stays.at(-1);
    if (last?.file === file) last.names.push(name);
    else stays.push({ file, names: [name] });
  }
  return stays.map(({ file, names }, i) => {
    const before = stays[i - 1];
    const climb = before !== undefined && rankOf(file) > rankOf(before.file) ? "↑ " : "";
    return `- ${climb}\`${file}\`: ${names.map((name) => `\`${name}\``).join(", ")}`;
  });
}

describe("the ledger's way through the code", () => {
  let ways: Ways;
  beforeAll(async () => {
    const program = fileURLToPath(new URL("./ledger-ways.ts", import.meta.url));
    ways = JSON.parse((await promisify(execFile)(process.execPath, [program])).stdout);
  }, 120_000);

  it.each(["withdrawal", "close"] as const)(
    "is short, and as docs/architecture.md lists it: %s",
    (way) => {
      const { heading, stays, climbs } = MOST[way];
      const listed = sectionOf(heading).match(/^- .*$/gm) ?? [];
      const found = staysOf(ways[way]);
      expect(listed).toEqual(found);
      expect(found.length).toBeLessThanOrEqual(stays);
      expect(found.filter((stay) => stay.startsWith("- ↑")).length).toBeLessThanOrEqual(climbs);
    },
  );
});
