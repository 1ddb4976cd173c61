import {
  nonsense,
  type RemoteOptions,
  RemoteService,
  signatureIn,
} from "../committee/member-service.ts";
import { type Address, type Hash, MODES } from "../model.ts";
import type { ProposedBatch, Settlement } from "../ports.ts";
import { struct, typedData } from "../protocol/typed-data.ts";
import type { IssuerConsent } from "./issuer.ts";

/** A way to ask one issuer: in this process, or over its service. */
export interface IssuerClient {
  readonly address: Address;
  /** The issuer's consent. Rejects when it consents to no asset, or cannot be reached. */
  consent(batch: ProposedBatch, signal: AbortSignal): Promise<IssuerConsent>;
}

/** An operator sends these facts of a batch when it asks for a consent. */
export type ConsentRequest = Pick<
  ProposedBatch,
  "mode" | "batchNumber" | "batchRoot" | "vaultCount" | "dataHash"
>;

const REQUEST_TYPES = {
  ConsentRequest: struct(
    "uint8 mode,uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash",
  ),
} as const;

/**
 * The operator's signed request. Without it, a stranger's batch could fill the issuer's store.
 *
 * @example
 * const signature = await operator.signTypedData(consentRequestTypedData(settlement, batch));
 */
export function consentRequestTypedData(
  settlement: Pick<Settlement, "chainId" | "contract">,
  { mode, batchNumber, batchRoot, vaultCount, dataHash }: ConsentRequest,
) {
  const place = { mode: MODES.indexOf(mode), batchNumber: BigInt(batchNumber) };
  return typedData(settlement, REQUEST_TYPES, "ConsentRequest", {
    ...place,
    batchRoot,
    vaultCount,
    dataHash,
  } as const);
}

/**
 * An issuer that runs as its own service. The caller sets the time limit.
 *
 * @example
 * const issuer = new RemoteIssuer({ address, url: "https://issuer.example", operator, settlement
 * }); await new Settler({ engine, l1, committee, issuers: [issuer], fromBlock }).run(signal);
 */
export class RemoteIssuer extends RemoteService<RemoteOptions> implements IssuerClient {
  async consent(batch: ProposedBatch, signal: AbortSignal): Promise<IssuerConsent> {
    const request = consentRequestTypedData(this.options.settlement, batch);
    const answer = await this.askFor("consent", batch, request, {}, signal);
    const { assets, refused } = answer;
    if (
      !Array.isArray(assets) ||
      !Array.isArray(refused) ||
      !assets.every(isAssetType) ||
      !refused.every(isRefused)
    )
      throw nonsense("no assets of the consent");
    return { signature: signatureIn(answer), assets, refused };
  }
}

function isAssetType(value: unknown): value is Hash {
  return typeof value === "string" && /^0x[0-9a-f]{64}$/.test(value);
}

function isRefused(value: unknown): value is IssuerConsent["refused"][number] {
  const { assetType, reason } = (value ?? {}) as Partial<Record<string, unknown>>;
  return isAssetType(assetType) && typeof reason === "string";
}
