import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type Hex, toHex } from "viem";
import { COMMITTEE, OPERATOR, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { SERVER, settingsOf } from "../cli/cli.ts";
import { at } from "../settlement/fixture.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

export interface OperatorOptions {
  /** Folder of the engine's store, which holds an application already. */
  readonly store: string;
  readonly rpcUrl: string;
  readonly contract: Hex;
  readonly fromBlock: bigint;
  /** The addresses of the members' services, in the order of the committee's accounts. */
  readonly members: readonly string[];
  /** 0: any. */
  readonly port: number;
  /** Settings besides, and instead. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * `npm run server` with a chain and the operator's key: engine, settlement and API in one process.
 */
export class OperatorProcess implements AsyncDisposable {
  readonly url: string;
  readonly #options: OperatorOptions;
  readonly #child: ChildProcess;
  readonly #output: () => string;

  private constructor(
    url: string,
    options: OperatorOptions,
    child: ChildProcess,
    output: () => string,
  ) {
    this.url = url;
    this.#options = options;
    this.#child = child;
    this.#output = output;
  }

  static async start(options: OperatorOptions): Promise<OperatorProcess> {
    const { store, rpcUrl, contract, fromBlock, members, port, settings } = options;
    const child = spawn(process.execPath, SERVER, {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        ...settingsOf(store, { chainId: 31_337n, contract }),
        MINTMARK_RPC_URL: rpcUrl,
        MINTMARK_OPERATOR_KEY: toHex(OPERATOR.getHdKey().privateKey ?? new Uint8Array()),
        MINTMARK_MEMBERS: members
          .map((url, index) => `${at(COMMITTEE, index).address}=${url}`)
          .join(","),
        MINTMARK_THRESHOLD: `${THRESHOLD}`,
        MINTMARK_FROM_BLOCK: `${fromBlock}`,
        MINTMARK_CONFIRMATIONS: "2",
        MINTMARK_SEAL_SECONDS: "1",
        MINTMARK_SETTLE_SECONDS: "1",
        MINTMARK_PORT: `${port}`,
        ...settings,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    const url = await new Promise<string>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        output += chunk.toString();
        const [, listening] = /Server listening at (http:[^"\s]+)/.exec(output) ?? [];
        if (listening) resolve(listening);
      };
      child.stdout?.on("data", read);
      child.stderr?.on("data", read);
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${output}`)));
    });
    return new OperatorProcess(url, options, child, () => output);
  }

  /** Everything that it has printed and logged. */
  get output(): string {
    return this.#output();
  }

  /** Ends it as a power cut would, and returns what starts it again on the same store and port. */
  async kill(): Promise<() => Promise<OperatorProcess>> {
    await this.#end("SIGKILL");
    return () => OperatorProcess.start({ ...this.#options, port: Number(new URL(this.url).port) });
  }

  /** Ends it in order; resolves with the exit code. */
  stop(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  /** Leaves nothing behind of a test that failed half-way; harmless after `stop`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end("SIGKILL");
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, "exit");
      this.#child.kill(signal);
      await ended;
    }
    return this.#child.exitCode;
  }
}
