import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { mintmark } from "./cli.ts";

describe("completion", () => {
  /** What bash offers where the last word is completed. */
  async function offered(...words: readonly string[]): Promise<string[]> {
    const { stdout } = await mintmark(["completion", "bash"]);
    const line = ["mintmark", ...words].map((word) => `'${word}'`).join(" ");
    const ask = `COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _mintmark; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const bash = spawnSync("bash", ["-c", `${stdout}\n${ask}`], { encoding: "utf8" });
    expect(bash.stderr).toBe("");
    return bash.stdout.split("\n").filter((word) => word !== "");
  }

  test("of bash offers commands, their commands, and their options", async () => {
    expect(await offered("ex")).toEqual(expect.arrayContaining(["exit", "exit-kit", "export"]));
    expect(await offered("keys", "")).toEqual(expect.arrayContaining(["issue", "list", "rotate", "revoke"]));
    expect(await offered("keys", "issue", "--app")).toEqual(["--application"]);
    expect(await offered("exit", "sword.json", "--dry")).toEqual(["--dry-run"]);
  });

  test("is there for zsh and fish too, and says so of any other shell", async () => {
    const [zsh, fish, other] = await Promise.all(
      ["zsh", "fish", "csh"].map((shell) => mintmark(["completion", shell])),
    );
    expect(zsh?.stdout).toMatch(/^#compdef mintmark/);
    expect(fish?.stdout).toContain("complete -c mintmark");
    expect([other?.code, other?.stderr]).toEqual([2, expect.stringContaining("bash, zsh or fish")]);
  });
});
