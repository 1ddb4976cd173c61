import { execFile, execFileSync, spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import * as help from "../../scripts/cli/help.ts";
import { programOf } from "../../scripts/commands/program.ts";
import { SETTLEMENT } from "../server/fixture.ts";
import { cleanEnvironment, mintmark, mintmarkProcess, settingsOf } from "./cli.ts";

function leaves(
  command: Command,
  path: readonly string[] = [],
): { path: readonly string[]; command: Command }[] {
  if (command.commands.length === 0) return [{ path, command }];
  return command.commands.flatMap((child) => leaves(child, [...path, child.name()]));
}

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp();
  return text;
}

describe("the command line", () => {
  test("every command shows examples of itself, and answers with JSON when asked", async () => {
    const all = leaves(await programOf());
    expect(all.length).toBeGreaterThan(25);
    for (const { path, command } of all) {
      const help = helpOf(command);
      expect(help).toContain(`$ mintmark ${path.join(" ")}`);
      expect(help).toContain("--json");
      expect(help, "a setting without its meaning").not.toMatch(/<value> +\(MINTMARK_/);
    }
  });

  test("shows the same help from the package's file, which never does a command's work", async () => {
    const whole = await programOf();
    const kept = JSON.parse(JSON.stringify(help.helpOf(whole))) as help.Help;
    const copy = new Command("mintmark").helpCommand(
      "help [command]",
      "print the help of a command",
    );
    const worked = vi.fn(async () => {});
    help.addHelp(copy, kept, worked);
    const shown = (program: Command) =>
      [...program.commands, ...leaves(program).map(({ command }) => command)].map(helpOf);
    expect(shown(copy)).toEqual(shown(whole));
    await copy.parseAsync(["orders", "--status", "--help"], { from: "user" });
    expect(worked).toHaveBeenCalledOnce();
  });

  test("has the commands and groups that the list of docs/cli.md names, and no others", async () => {
    const page = await readFile("docs/cli.md", "utf8");
    const [list = ""] = page.slice(page.indexOf("\n- ")).split("\n\n");
    const named = [...list.matchAll(/`([a-z][a-z-]*)`/g)].map(([, name = ""]) => name);
    const { commands } = await programOf();
    expect(named.toSorted()).toEqual(commands.map((command) => command.name()).toSorted());
  });

  test("shows its exit codes, and exits with 0 for help and 2 for unknown arguments", async () => {
    const help = await mintmarkProcess(["--help"]);
    expect([help.code, help.stderr]).toEqual([0, ""]);
    expect(help.stdout).toContain("Exit codes:");
    const [unknown, option, missing, bare] = await Promise.all(
      [["mnt"], ["keys", "list", "--aplication", "x"], ["keys", "list"], ["keys"]].map(
        (args, index) => (index === 2 ? mintmarkProcess : mintmark)(args),
      ),
    );
    expect([unknown?.code, option?.code, missing?.code, bare?.code]).toEqual([2, 2, 2, 2]);
    expect(missing?.stderr).toContain("--application");
    expect(unknown?.stdout).toBe("");
    for (const ended of [unknown, option, missing]) expect(ended?.stderr).toMatch(/^.+\n$/);
    const places = await Promise.all([
      mintmark(["drop", "/nofile"]),
      mintmark(["exit-page", "/proc/x.html"]),
      mintmark(["server"]),
      mintmark(["server", "--prot", "1"]),
    ]);
    expect(places.map(({ stderr }) => stderr)).toEqual([
      "error: /nofile does not exist\n",
      "error: /proc/x.html cannot be written (ENOENT); name another file\n",
      expect.stringMatching(/^error: missing: MINTMARK_STORE, .+\n$/),
      "error: unknown option '--prot' (Did you mean --port?) (see --help)\n",
    ]);
    // Commander itself would show the help of the parent.
    for (const args of [["members"], ["members", "--help"], ["help", "members"]]) {
      const mistyped = await mintmark(args);
      const told = "error: unknown command 'members' (Did you mean member?) (see --help)\n";
      expect([mistyped.code, mistyped.stdout, mistyped.stderr]).toEqual([2, "", told]);
    }
  });
});

describe("on a store that no server has open", () => {
  let folder: string;
  let settings: Record<string, string>;
  const run = (args: readonly string[], input?: string) => mintmark(args, settings, input);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-cli-"));
    settings = settingsOf(join(folder, "store"), SETTLEMENT);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("names missing settings, and creates no store by accident", async () => {
    const none = await mintmark(["applications", "list"]);
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("MINTMARK_STORE")]);
    const typo = await run(["applications", "list"]);
    expect([typo.code, typo.stderr]).toEqual([2, expect.stringContaining("mintmark init")]);
    const { MINTMARK_STORE = "" } = settings;
    const unset = await mintmark(["init"], { MINTMARK_STORE });
    expect([unset.code, unset.stderr]).toEqual([2, expect.stringContaining("MINTMARK_CHAIN_ID")]);
    expect(unset.stderr).toMatch(
      /^.+missing: MINTMARK_ENVIRONMENT, MINTMARK_CHAIN_ID, MINTMARK_CONTRACT.+\n$/,
    );
  });

  test("takes the server's own file, and a live store without asking its chain", async () => {
    const file = join(folder, "server.json");
    const store = join(folder, "live");
    const contract = SETTLEMENT.contract;
    await writeFile(
      file,
      JSON.stringify({ store, environment: "live", chainId: 1, contract, logLevel: "warn" }),
    );
    const created = await mintmark(["init", "--json"], { MINTMARK_CONFIG: file });
    expect(created.json()).toEqual({ store, environment: "live", chainId: "1", contract });
    const listed = await mintmark(["applications", "list"], { MINTMARK_CONFIG: file });
    expect([listed.code, listed.stdout]).toEqual([0, "none\n"]);
  });

  test("runs a tenant from its creation to the end of its key", async () => {
    expect((await run(["init"])).code).toBe(0);
    const { applicationId } = (await run(["applications", "create", "Game", "--json"])).json();
    const issued = await run([
      "keys",
      "issue",
      "--application",
      applicationId,
      "--quota",
      "10",
      "--json",
    ]);
    const { keyId, apiKey } = issued.json();
    expect(apiKey).toMatch(/^mm_test_/);
    const rotated = (await run(["keys", "rotate", keyId, "--json"])).json();
    expect(rotated).toMatchObject({ applicationId, mintQuota: "10", revokedAt: null });
    expect((await run(["keys", "revoke", keyId, "--json"])).json().revokedAt).not.toBeNull();
    const listed = await run(["keys", "list", "--application", applicationId]);
    expect(listed.stdout).toContain(keyId);
    expect(listed.stdout + listed.stderr).not.toContain(
      apiKey.slice("mm_test_".length + keyId.length + 1),
    );
    const owner = `0x${"70".repeat(20)}`;
    const user = (
      await run(["users", "create", owner, "--application", applicationId, "--json"])
    ).json();
    const shown = (
      await run(["users", "show", user.userId, "--application", applicationId, "--json"])
    ).json();
    expect(shown).toMatchObject({
      ownerAddress: owner,
      balances: { data: [], pagination: { hasMore: false } },
    });
    const legible = await run(["users", "show", user.userId, "--application", applicationId]);
    expect(legible.stdout).toMatch(/^createdAt +2.+\n\nbalances:\nnone\n$/m);
    const ada = [
      "people",
      "invite",
      "Ada",
      "--role",
      "admin",
      "--application",
      applicationId,
      "--json",
    ];
    const { link, url } = (await run(ada)).json();
    expect(url).toBe(`<the server's address>/console#link=${link}`);
    expect((await run(["applications", "suspend", applicationId])).stdout).toMatch(
      /suspended +true/,
    );
  });

  test("prepares an asset until only its registration on L1 is missing", async () => {
    const contract = `0x${"c0".repeat(20)}`;
    const add = [
      "assets",
      "add",
      contract,
      "--standard",
      "erc721",
      "--name",
      "Swords",
      "--symbol",
      "SWRD",
      "--json",
    ];
    const { assetId } = (await run(add)).json();
    expect((await run([...add])).code).toBe(1);
    expect((await run(["assets", "whitelist", assetId, "--json"])).json()).toMatchObject({
      whitelisted: true,
    });
    const [header = "", asset] = (await run(["assets", "list"])).stdout.split("\n");
    expect(header.split(/ +/)).toEqual(
      expect.arrayContaining(["assetId", "symbol", "whitelisted", "registered"]),
    );
    expect(asset).toContain(assetId);
    const unreachable = ["assets", "register", assetId, "--rpc", "http://127.0.0.1:9"];
    const failed = await run(unreachable);
    expect([failed.code, failed.stdout]).toEqual([3, ""]);
    expect(failed.stderr).toContain("l1_failed");
  });

  test("refuses with the code of the error, as JSON when asked, and nothing on standard output", async () => {
    const nobody = "00000000-0000-4000-8000-000000000000";
    const refused = await run(["users", "list", "--application", nobody, "--json"]);
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(JSON.parse(refused.stderr).error.code).toBe("application_not_found");
    const many = await run([
      "assets",
      "add",
      "nowhere",
      "--standard",
      "erc9",
      "--name",
      "",
      "--symbol",
      "S",
      "--json",
    ]);
    const pointers = JSON.parse(many.stderr).error.errors.map(
      ({ pointer }: { pointer: string }) => pointer,
    );
    expect(pointers.toSorted()).toEqual(["/contractAddress", "/name", "/standard"]);
    const told = await run(["applications", "suspend", "mine"]);
    expect(told.stderr).toBe(
      "error: 1 wrong value (validation_failed)\n  <application>: Give a UUID.\n",
    );
    const mint = ["mint", "--user", nobody, "--asset", "x", "--units", "1"];
    const mistyped = await mintmark(mint, { ...settings, MINTMARK_API_KEY: "x" });
    expect(mistyped.stderr).toBe(
      "error: 1 wrong value (validation_failed)\n  --asset: Give a UUID.\n",
    );
    const output = await run(["export", "batch", "validium-0", "--output", "x", "--json"]);
    expect(JSON.parse(output.stderr).error.code).toBe("batch_not_found");
  });

  test("checks the store, and shows no progress on a pipe", async () => {
    const { code, stderr, json } = await mintmarkProcess(["verify", "--json"], settings);
    expect([code, stderr]).toEqual([0, ""]);
    expect(json().problems).toEqual([]);
    expect((await run(["verify"])).stdout).toMatch(/^state\.countRollup +0$/m);
    expect((await run(["batches", "seal", "--json"])).json()).toEqual([]);
    expect((await run(["batches", "status", "--json"])).json().data).toEqual([]);
    expect((await run(["withdrawals", "pending"])).stdout).toBe("none\n");
  });

  test("hostile arguments are refused, with no trace of the program or of the secret", async () => {
    const noWhere = ["--rpc", "http://127.0.0.1:9"];
    // A digit of another case than the checksum has.
    const WRONG = "0x5Aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    const hostile: readonly (readonly [number, ...string[]])[] = [
      [1, "keys", "revoke", "__proto__"],
      [1, "keys", "revoke", "constructor"],
      [2, "applications", "suspend", "../../etc/passwd"],
      [2, "applications", "create", "\u001b[2Jgone"],
      [2, "applications", "create", "x".repeat(100_000)],
      [2, "batches", "seal", "--mode", "__proto__"],
      [2, "batches", "commit", "--from-block", "-1", "--rpc", "file:///etc/passwd", "--key-stdin"],
      [2, "batches", "commit", "--from-block", "1", ...noWhere, "--members", "nobody"],
      [
        2,
        "batches",
        "commit",
        "--from-block",
        "1",
        ...noWhere,
        "--members",
        `${WRONG}=http://127.0.0.1:9`,
      ],
      [2, "rebuild", "/dev/null/x", "--from-block", "1", ...noWhere, "--contract", WRONG],
      [2, "exit", "/dev/null/x", ...noWhere, "--recipient", WRONG],
      [2, "rebuild", "/dev/null/x", "--from-block", "1e9", ...noWhere, "--contract", "0x00"],
      [
        2,
        "rebuild",
        "/dev/null/x",
        "--from-block",
        "1",
        "--rpc",
        "nowhere",
        "--contract",
        SETTLEMENT.contract,
      ],
      [2, "users", "list", "--application", "$(id)", "--limit", "1e99", "--cursor", "%00"],
    ];
    const readsKey = (args: readonly string[]) =>
      args.includes("--key-stdin") || args[0] === "exit";
    // One after the other: each opens the store for itself.
    for (const [code, ...args] of hostile) {
      const ended = await run(args, readsKey(args) ? "0xnotakey\n" : undefined);
      expect([args.slice(0, 3), ended.code, ended.stdout]).toEqual([args.slice(0, 3), code, ""]);
      expect(ended.stderr).toMatch(/^error: /);
      if (args.some((arg) => arg.startsWith(WRONG))) expect(ended.stderr).toContain("EIP-55");
      for (const trace of ["\n    at ", "\u001b", "0xnotakey"])
        expect(ended.stderr).not.toContain(trace);
    }
  });
});

describe("completion", () => {
  /** Bash's offers where the last word is completed. */
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
    expect(await offered("keys", "")).toEqual(
      expect.arrayContaining(["issue", "list", "rotate", "revoke"]),
    );
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

const ROOT = new URL("../../", import.meta.url).pathname;
/** Node's command for each npm script. */
const OURS = Object.entries(packageJson.scripts).filter(([, command]) =>
  /^(?:exec )?node /.test(command),
);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-help-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("there are npm scripts to ask", () => {
  expect(OURS.map(([name]) => name)).toEqual(expect.arrayContaining(["start", "demo", "server"]));
});

test("`npm run build:contracts -- --input` prints all of it to a pipe", () => {
  const printed = execFileSync("npm", [
    "run",
    "-s",
    "build:contracts",
    "--",
    "--input",
    "Administration",
  ]).toString();
  expect(JSON.parse(printed)).toHaveProperty("settings.viaIR", true);
});

test.each(OURS)("`npm run %s -- --help` starts nothing", async (_, command) => {
  // A port that nobody may listen on and a folder that nobody may write to: whatever starts, fails.
  const env = cleanEnvironment({
    MINTMARK_PORT: "1e9",
    MINTMARK_CHAIN_PORT: "1e9",
    MINTMARK_SANDBOX: join(folder, "sandbox"),
  });
  const [program = "", ...args] = command.replace("exec ", "").split(" ");
  expect(program).toBe("node");
  // The program's own commands are all one program; `npm start` stands for how it is started.
  const isOurs = args[0] === "scripts/mintmark.js";
  const { stdout } = isOurs
    ? await mintmark([...args.slice(1), "--help"], env as Record<string, string>)
    : await promisify(execFile)(process.execPath, [...args, "--help"], { cwd: ROOT, env });
  expect(stdout).toMatch(/^usage: /i);
  expect(await readdir(folder)).toEqual([]);
});
