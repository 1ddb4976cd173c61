import { getSignPayload } from "ox/TypedData";
import { type Hash, MAX_BATCH_VAULTS, MODES, type Mode } from "../model.ts";
import type { ConsentAsset, PortalIdentity } from "../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { HASH_BYTES, hashOf, type PackedValue } from "./hex.ts";
import { MAX_BATCH_ASSETS, requireManifest } from "./manifest.ts";
import { struct, typedData } from "./typed-data.ts";
import { MAX_BATCH_NUMBER } from "./vault.ts";

/** The message that an issuer signs: it agrees with all vaults of its assets in this batch. */
export interface IssuerConsent {
  readonly mode: Mode;
  readonly batchNumber: number;
  /** Number of slots of the batch. */
  readonly vaultCount: number;
  /** Root of the vault tree, or the content of a batch in blobs. */
  readonly content: Hash;
  /**
   * `manifestHash` of all assets that the batch's data names, those that L1 leaves out among them:
   * the words of a vault name its asset by its place there.
   */
  readonly manifest: Hash;
  /** {@link assetsHash} of the issuer's assets in the batch. */
  readonly assetsHash: Hash;
}

/** EIP-712 type of {@link IssuerConsent}. */
const ISSUER_CONSENT_TYPE = {
  IssuerConsent: struct(
    "uint8 mode,uint64 batchNumber,uint32 vaultCount,bytes32 content,bytes32 manifest,bytes32 assetsHash",
  ),
} as const;

/**
 * `keccak256( chainId(8) ‖ assetType(32) ‖ issuerEpoch(8), … )` over the assets of one issuer.
 *
 * @param assets - strictly ascending by chain and asset type, 1 to 255
 * @throws MintmarkError `validation_failed` for assets that do not ascend, or a value out of bounds
 *
 * @example
 * const hash = assetsHash([{ chainId: 1n, assetType, issuerEpoch: 1n }]);
 */
export function assetsHash(assets: readonly ConsentAsset[]): Hash {
  requireInteger("number of assets", assets.length, 1, MAX_BATCH_ASSETS);
  requireManifest(assets);
  const parts = assets.flatMap(({ chainId, assetType, issuerEpoch }): PackedValue[] => {
    requireBigint("chainId", chainId, 0n, MAX_UINT64);
    requireBigint("issuerEpoch", issuerEpoch, 0n, MAX_UINT64);
    return [chainId, assetType, issuerEpoch];
  });
  return hashOf([8, HASH_BYTES, 8], ...parts);
}

/**
 * The `IssuerConsent` typed data for viem's `signTypedData`. Throws `validation_failed` for values
 * out of bounds.
 *
 * @param domain - the settlement contract
 *
 * @example
 * const batch = { mode, batchNumber, vaultCount, content, manifest: manifestHash(assets) };
 * const consent = { ...batch, assetsHash: assetsHash(own) };
 * const signature = await issuer.signTypedData(consentTypedData(settlement, consent));
 */
export function consentTypedData(domain: PortalIdentity, consent: IssuerConsent) {
  requireInteger("batchNumber", consent.batchNumber, 0, MAX_BATCH_NUMBER);
  requireInteger("vaultCount", consent.vaultCount, 1, MAX_BATCH_VAULTS);
  const { mode, batchNumber, vaultCount, content, manifest, assetsHash } = consent;
  const message = {
    mode: MODES.indexOf(mode),
    batchNumber: BigInt(batchNumber),
    vaultCount,
    content,
    manifest,
    assetsHash,
  } as const;
  return typedData(domain, ISSUER_CONSENT_TYPE, "IssuerConsent", message);
}

export function consentDigest(domain: PortalIdentity, consent: IssuerConsent): Hash {
  return getSignPayload(consentTypedData(domain, consent));
}
