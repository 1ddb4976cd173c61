import type { LocalAccount } from "viem";
import { readBody } from "../archive/batch-source.ts";
import { MintmarkError } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import type { SealedBatch, Settlement } from "../ports.ts";
import type { MemberClient } from "./collector.ts";
import { attestationRequestTypedData } from "./request.ts";

export interface RemoteMemberOptions {
  /** The member's own address; what it answers is checked against it. */
  readonly address: Address;
  /** Where its service listens. */
  readonly url: string;
  /** Signs the requests; holds the operator role of the contract. */
  readonly operator: LocalAccount;
  readonly settlement: Settlement;
}

/** Answers are a few lines of JSON; a member that sends more is not listened to. */
const MAX_ANSWER_BYTES = 64 * 1024;
const SIGNATURE = /^0x[0-9a-f]{130}$/;

/** A committee member that runs as a service of its own. How long it may take, the collector decides. */
export class RemoteMember implements MemberClient {
  readonly address: Address;
  readonly #url: string;
  readonly #operator: LocalAccount;
  readonly #settlement: Settlement;

  constructor({ address, url, operator, settlement }: RemoteMemberOptions) {
    this.address = address.toLowerCase() as Address;
    this.#url = url.replace(/\/+$/, "");
    this.#operator = operator;
    this.#settlement = settlement;
  }

  async sign(batch: SealedBatch, epoch: bigint, signal: AbortSignal): Promise<Hex> {
    const { batchNumber, batchRoot, vaultCount, dataHash, data } = batch;
    const request = { batchNumber, batchRoot, vaultCount, dataHash, epoch };
    const authorization = await this.#operator.signTypedData(attestationRequestTypedData(this.#settlement, request));
    const claim = new URLSearchParams({ batchRoot, vaultCount: `${vaultCount}`, dataHash, epoch: `${epoch}` });
    const answer = await this.#ask(`/v1/batches/validium-${batchNumber}/attestation?${claim}`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream", authorization: `Operator ${authorization}` },
      // A view of its own buffer: what fetch takes must not be shared.
      body: Uint8Array.from(data),
      signal,
    });
    const { signature } = answer;
    if (typeof signature !== "string" || !SIGNATURE.test(signature)) throw this.#nonsense("no signature");
    return signature as Hex;
  }

  async nextBatch(signal: AbortSignal): Promise<number> {
    const { nextBatch } = await this.#ask("/v1/status", { signal });
    if (typeof nextBatch !== "number" || !Number.isInteger(nextBatch) || nextBatch < 0) {
      throw this.#nonsense("no batch number");
    }
    return nextBatch;
  }

  async #ask(path: string, init: RequestInit): Promise<Readonly<Record<string, unknown>>> {
    const response = await this.#fetch(path, init);
    const text = new TextDecoder().decode(await readBody(response, MAX_ANSWER_BYTES));
    const answer = parseObject(text);
    if (response.ok && answer !== null) return answer;
    if (response.ok || answer === null) throw this.#nonsense(`${response.status}, and not JSON`);
    const { code, detail } = answer;
    throw new MintmarkError("l1_failed", `refused (${short(code)}): ${short(detail)}`);
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(`${this.#url}${path}`, { ...init, redirect: "error" });
    } catch (error) {
      // Node says only "fetch failed"; why, is in the cause.
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new MintmarkError("l1_failed", `cannot be reached at ${this.#url} (${cause})`, { cause: error });
    }
  }

  #nonsense(what: string): MintmarkError {
    return new MintmarkError("l1_failed", `answered nonsense: ${what}`);
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : null;
  } catch {
    return null;
  }
}

/** What a stranger says, cut to what a log line holds. */
function short(value: unknown): string {
  return String(value)
    .replaceAll(/[^\x20-\x7e]/g, " ")
    .slice(0, 200);
}
