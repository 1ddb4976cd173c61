import { getSignPayload } from "ox/TypedData";
import type { LocalAccount, TypedDataDefinition } from "viem";
import { readBody } from "../archive/sources.ts";
import { MintmarkError } from "../errors.ts";
import { type Address, batchIdOf, type Hex } from "../model.ts";
import type { HistoryPoint, ProposedBatch, Settlement } from "../ports.ts";
import { MAX_UINT64, requireBigint } from "../protocol/bounds.ts";
import { signerOf } from "../protocol/signature.ts";
import { visible } from "../protocol/text.ts";
import { transferBatchTypedData } from "../protocol/transfer.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import type { ValidiumBatchMessage } from "../protocol/typed-data.ts";
import {
  struct,
  TYPED_DATA_TYPES,
  typedData,
  validiumBatchTypedData,
} from "../protocol/typed-data.ts";

/**
 * Longer responses are refused. The longest is an issuer's, with a reason for each of 255 assets.
 */
const MAX_ANSWER_BYTES = 256 * 1024;
const SIGNATURE = /^0x(?:[0-9a-f]{2}){0,4096}$/i;

/** Where the service of a member or an issuer is. */
interface ServiceOptions {
  /** The member's or issuer's own address; its signatures are checked against it. */
  readonly address: Address;
  readonly url: string;
}

/** A service, and the operator that asks it. */
export interface RemoteOptions extends ServiceOptions {
  /** Signs the requests. Holds the operator role of the contract. */
  readonly operator: LocalAccount;
  readonly settlement: Settlement;
}

/** The client of a service over HTTP. Checks every answer; the caller's signal limits the time. */
export abstract class RemoteService<Options extends ServiceOptions = ServiceOptions> {
  readonly address: Address;
  protected readonly options: Options;

  constructor(options: Options) {
    this.address = options.address.toLowerCase() as Address;
    this.options = options;
  }

  /**
   * The JSON object of the response. Rejects with `l1_failed` and the member's own code and detail
   * when it refuses.
   */
  protected async ask(path: string, init: RequestInit): Promise<Readonly<Record<string, unknown>>> {
    const url = this.options.url.replace(/\/+$/, "");
    const response = await fetch(`${url}${path}`, { ...init, redirect: "error" }).catch(
      (error: unknown) => {
        // Node reports only "fetch failed". The cause has the reason.
        const cause =
          error instanceof Error && error.cause instanceof Error
            ? error.cause.message
            : String(error);
        throw new MintmarkError("l1_failed", `cannot be reached at ${url} (${cause})`, {
          cause: error,
        });
      },
    );
    const text = new TextDecoder().decode(await readBody(response, MAX_ANSWER_BYTES));
    const answer = parseObject(text);
    if (response.ok && answer !== null) return answer;
    if (response.ok || answer === null) throw nonsense(`${response.status}, but not JSON`);
    const { code, detail } = answer;
    throw new MintmarkError("l1_failed", `refused (${short(code)}): ${short(detail)}`);
  }

  /**
   * The response to a batch, whose data goes with an operator's signed request. `terms` are what
   * the request adds.
   */
  protected async askFor(
    this: RemoteService<RemoteOptions>,
    name: "attestation" | "consent",
    { mode, batchNumber, batchRoot, vaultCount, dataHash, data }: ProposedBatch,
    request: TypedDataDefinition,
    terms: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ) {
    const asked = new URLSearchParams({
      batchRoot,
      vaultCount: `${vaultCount}`,
      dataHash,
      ...terms,
    });
    const authorization = `Operator ${await this.options.operator.signTypedData(request)}`;
    return this.ask(`/v1/batches/${batchIdOf(mode, batchNumber)}/${name}?${asked}`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream", authorization },
      // A copy, because fetch does not accept a shared buffer.
      body: Uint8Array.from(data),
      signal,
    });
  }
}

/** The `signature` of a response. The caller checks its form and its signer. */
export function signatureIn({ signature }: Readonly<Record<string, unknown>>): Hex {
  if (typeof signature !== "string" || !SIGNATURE.test(signature)) throw nonsense("no signature");
  return signature.toLowerCase() as Hex;
}

export function nonsense(what: string): MintmarkError {
  return new MintmarkError("l1_failed", `sent an invalid response: ${what}`);
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? (value as Readonly<Record<string, unknown>>)
      : null;
  } catch {
    return null;
  }
}

/** Text from outside, cut to fit a log line. */
function short(value: unknown): string {
  return visible(String(value).slice(0, 200));
}

/** A client of one member, in this process or over its service. */
export interface MemberClient {
  readonly address: Address;
  /** ECDSA in any of its forms; rejects when the member refuses or is unreachable. */
  sign(batch: ProposedBatch, terms: AttestationTerms, signal: AbortSignal): Promise<Hex>;
  /** The number of the first validium batch that the member lacks. */
  nextBatch?(signal: AbortSignal): Promise<number>;
}

/**
 * A committee member that runs as a separate service. The collector limits the time of a request.
 *
 * @example
 * const member = new RemoteMember({ address, url: "https://member.example", operator, settlement
 * }); const committee = collectAttestations({ members: [member], threshold: 1, l1 });
 */
export class RemoteMember extends RemoteService<RemoteOptions> implements MemberClient {
  async sign(batch: ProposedBatch, terms: AttestationTerms, signal: AbortSignal): Promise<Hex> {
    const { history, sequence, epoch } = terms;
    const request = attestationRequestTypedData(this.options.settlement, { ...batch, ...terms });
    const asked = { history, sequence: `${sequence}`, epoch: `${epoch}` };
    return signatureIn(await this.askFor("attestation", batch, request, asked, signal));
  }

  async nextBatch(signal: AbortSignal): Promise<number> {
    const { nextBatch } = await this.ask("/v1/status", { signal });
    if (typeof nextBatch !== "number" || !Number.isInteger(nextBatch) || nextBatch < 0)
      throw nonsense("no batch number");
    return nextBatch;
  }
}

/** The values that a member signs with a batch. */
export interface AttestationTerms extends HistoryPoint {
  /** The epoch of the committee in force. */
  readonly epoch: bigint;
}

/** The message that a member signs: of a validium batch, or of a batch of transfers. */
export function attestationTypedData(
  settlement: Pick<Settlement, "chainId" | "contract">,
  batch: ProposedBatch,
  terms: AttestationTerms,
): TypedDataDefinition {
  const message = { ...batch, ...terms };
  return isTransferData(batch.mode, batch.data)
    ? transferBatchTypedData(settlement, message)
    : validiumBatchTypedData(settlement, message);
}

/**
 * The operator's signed request to a member. Without it, anyone could give a member a batch and use
 * up the number: the member signs no other batch for it until L1's history continues. It has the
 * attestation's fields and one more under another type name, so neither signature can pass for the
 * other. A repeated request changes nothing.
 */
export interface AttestationRequest extends ValidiumBatchMessage {
  /** Commits in `history`: shows a member which side is behind. */
  readonly sequence: bigint;
}

/**
 * The `AttestationRequest` typed data for viem's `signTypedData`. Throws `validation_failed` for
 * values out of bounds.
 *
 * @example
 * const request = attestationRequestTypedData(settlement, { ...batch, history, sequence, epoch });
 * const isOperators = (await requestSigner(request, signature)) === operatorAddress;
 */
export function attestationRequestTypedData(
  settlement: Pick<Settlement, "chainId" | "contract">,
  request: AttestationRequest,
) {
  const { sequence } = request;
  const { message } = validiumBatchTypedData(settlement, request);
  requireBigint("sequence", sequence, 0n, MAX_UINT64);
  const fields = [...TYPED_DATA_TYPES.ValidiumBatch, ...struct("uint64 sequence")] as const;
  return typedData(settlement, { AttestationRequest: fields }, "AttestationRequest", {
    ...message,
    sequence,
  } as const);
}

/**
 * The account that signed the typed data of a request. Throws `credentials_invalid` for an invalid
 * signature.
 *
 * @example
 * const signer = await requestSigner(consentRequestTypedData(settlement, batch), signature);
 */
export async function requestSigner(
  request: TypedDataDefinition,
  signature: Hex,
): Promise<Address> {
  const signer = await signerOf(getSignPayload(request), signature);
  if (signer !== null) return signer;
  throw new MintmarkError("credentials_invalid", "The request's signature cannot be read.");
}
