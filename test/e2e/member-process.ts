import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Hex } from "viem";

const ROOT = new URL("../../", import.meta.url).pathname;

export interface MemberProcessOptions {
  /** The process; default `member`. */
  readonly command?: "member" | "issuer";
  /** Settings besides those below. */
  readonly env?: Readonly<Record<string, string>>;
  readonly key: Hex;
  readonly store: string;
  readonly rpcUrl: string;
  readonly contract: Hex;
  readonly fromBlock: bigint;
  /** 0: any. */
  readonly port: number;
  readonly peers: readonly string[];
}

/**
 * A committee member or an issuer as its operator runs it: a process that gets its key on standard
 * input.
 */
export class MemberProcess {
  readonly url: string;
  readonly #options: MemberProcessOptions;
  readonly #child: ChildProcess;
  readonly #output: () => string;

  private constructor(
    url: string,
    options: MemberProcessOptions,
    child: ChildProcess,
    output: () => string,
  ) {
    this.url = url;
    this.#options = options;
    this.#child = child;
    this.#output = output;
  }

  static async start(options: MemberProcessOptions): Promise<MemberProcess> {
    const {
      command = "member",
      env = {},
      key,
      store,
      rpcUrl,
      contract,
      fromBlock,
      port,
      peers,
    } = options;
    const child = spawn(process.execPath, ["scripts/mintmark.js", command], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        ...env,
        [`MINTMARK_${command.toUpperCase()}_STORE`]: store,
        MINTMARK_RPC_URL: rpcUrl,
        MINTMARK_CONTRACT: contract,
        MINTMARK_FROM_BLOCK: `${fromBlock}`,
        MINTMARK_CONFIRMATIONS: "0",
        MINTMARK_PORT: `${port}`,
        MINTMARK_PEERS: peers.join(","),
        MINTMARK_POLL_MS: "200",
      },
      stdio: ["pipe", "pipe", "pipe"],
    });
    child.stdin?.end(key);
    let output = "";
    const url = await new Promise<string>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        output += chunk.toString();
        const [, listening] =
          /(?:member|issuer) 0x[0-9a-f]{40} listens on (\S+)/.exec(output) ?? [];
        if (listening) resolve(listening);
      };
      child.stdout?.on("data", read);
      child.stderr?.on("data", read);
      child.once("exit", (code) => reject(new Error(`the process ended with ${code}:\n${output}`)));
    });
    return new MemberProcess(url, options, child, () => output);
  }

  /** Everything that it has printed and logged. */
  get output(): string {
    return this.#output();
  }

  async status(): Promise<{
    address: string;
    nextBatch: number;
    missingBatches: string[];
    inStepWithL1: boolean;
  }> {
    return (await fetch(`${this.url}/v1/status`)).json() as never;
  }

  /** Ends it as a power cut would, and returns what starts it again on the same store and port. */
  async kill(): Promise<() => Promise<MemberProcess>> {
    await this.#end("SIGKILL");
    const port = Number(new URL(this.url).port);
    return () => MemberProcess.start({ ...this.#options, port });
  }

  /** Ends it in order; resolves with the exit code. */
  async stop(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null)
      return this.#child.exitCode;
    const ended = once(this.#child, "exit");
    this.#child.kill(signal);
    await ended;
    return this.#child.exitCode;
  }
}
