import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

export interface Step {
  readonly commands: string;
  /**
   * The output that the guide shows, where each `…` stands for any text; null when it shows none.
   */
  readonly printed: string | null;
}

/** The commands of a guide, each with the block that follows them. */
export function stepsOf(guide: string): Step[] {
  const blocks = [
    ...readFileSync(`${ROOT}docs/guides/${guide}.md`, "utf8").matchAll(
      /^```(\w*)\n([\s\S]*?)^```$/gm,
    ),
  ];
  return blocks.flatMap(([, language, commands = ""], i) => {
    if (language !== "sh") return [];
    const [, next = "sh", printed = null] = blocks[i + 1] ?? [];
    return [{ commands, printed: next === "" || next === "json" ? printed : null }];
  });
}

/** Runs a guide's commands in a shell, line by line, and stops at the first that fails. */
export async function shell(
  commands: string,
  cwd: string,
  env: Record<string, string> = {},
): Promise<string> {
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;
  const options = { cwd, env: { PATH, ...env } };
  return (await promisify(execFile)("bash", ["-euo", "pipefail", "-c", commands], options)).stdout;
}

export function expectPrinted(output: string, { printed }: Step): void {
  const pattern = (printed ?? "")
    .split("…")
    .map((text) => text.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  expect(output).toMatch(new RegExp(pattern.join("[^\\n]*")));
}

/** The programs of the guides' command lines, of this repository. */
export function programs(folder: string): string {
  const bin = mkdtempSync(join(folder, "bin-"));
  const program = `#!/bin/sh\nshift\nexec ${process.execPath} ${ROOT}scripts/mintmark.js "$@"\n`;
  writeFileSync(join(bin, "npx"), program, { mode: 0o755 });
  return `${bin}:${dirname(process.execPath)}:${process.env.PATH}`;
}
