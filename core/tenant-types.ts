import type { AssetFilter, List, PageOptions } from "./list-types.ts";
import type {
  Address,
  ApiKey,
  Application,
  Asset,
  BlobScheme,
  Principal,
  Scope,
  Standard,
  User,
  Uuid,
} from "./model.ts";
import type { WaitOptions } from "./wait-types.ts";

export interface NewKey {
  /** Default: all. */
  readonly scopes?: readonly Scope[];
  /** Milliseconds since 1970; default never. */
  readonly expiresAt?: number | null;
  /** Most mint entries the key may ever make; default no bound. */
  readonly mintQuota?: bigint | null;
}

export interface IssuedKey {
  readonly key: ApiKey;
  /** The whole token, `mm_test_<keyId>_<secret and checksum>`. Not stored: shown once. */
  readonly secret: string;
}

export interface NewAsset {
  readonly assetId?: Uuid;
  readonly standard: Standard;
  /** The token's chain; default the settlement's. */
  readonly chainId?: bigint;
  readonly contractAddress: Address;
  /** Base units of one unit here; 1 for ERC-721 and ERC-1155. Default 1. */
  readonly quantum?: bigint;
  readonly name: string;
  readonly symbol: string;
  /** Default 0. */
  readonly decimals?: number;
  /** Default `mintmark`. */
  readonly blobScheme?: BlobScheme;
  readonly supplyCap?: bigint | null;
  /** Whose token it is: that application alone can enable it. Default: any application can, once it is whitelisted. */
  readonly applicationId?: Uuid;
}

/** Applications, their keys and users, and the assets that they may mint. */
export interface Tenants {
  createApplication(
    application: { readonly applicationId?: Uuid; readonly name: string },
    wait?: WaitOptions,
  ): Promise<Application>;
  application(applicationId: Uuid): Promise<Application>;
  applications(): AsyncIterable<Application>;
  suspendApplication(applicationId: Uuid, suspended: boolean, wait?: WaitOptions): Promise<Application>;
  issueKey(applicationId: Uuid, key?: NewKey, wait?: WaitOptions): Promise<IssuedKey>;
  keys(applicationId: Uuid): AsyncIterable<ApiKey>;
  revokeKey(keyId: string, wait?: WaitOptions): Promise<ApiKey>;
  /** Makes a token known. It is minted only once whitelisted, registered and enabled. */
  addAsset(asset: NewAsset, wait?: WaitOptions): Promise<Asset>;
  /** Every known asset, `enabled` false. */
  allAssets(): AsyncIterable<Asset>;
  whitelistAsset(assetId: Uuid, whitelisted: boolean, wait?: WaitOptions): Promise<Asset>;
  /**
   * What the settlement layer found: why L1 would refuse to mint of the asset, or null when it would not. With a fault nothing of it is
   * minted (`mint_unwithdrawable`), and `unavailableReason` tells it.
   */
  setMintingFault(assetId: Uuid, fault: string | null, wait?: WaitOptions): Promise<Asset>;
  /** The settlement layer read the asset in L1's registry. */
  markAssetRegistered(
    assetId: Uuid,
    facts?: { readonly minterLocked?: boolean | null },
    wait?: WaitOptions,
  ): Promise<Asset>;

  authenticate(token: string): Promise<Principal>;
  /** Idempotent for the same id and address; another address for a known id is `user_exists`. */
  createUser(
    applicationId: Uuid,
    user: { readonly userId?: Uuid; readonly ownerAddress: Address },
    wait?: WaitOptions,
  ): Promise<User>;
  user(applicationId: Uuid, userId: Uuid): Promise<User>;
  users(applicationId: Uuid, page?: PageOptions): List<User>;
  enableAsset(applicationId: Uuid, assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  disableAsset(applicationId: Uuid, assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  asset(applicationId: Uuid, assetId: Uuid): Promise<Asset>;
  assets(applicationId: Uuid, filter?: AssetFilter): List<Asset>;
}
