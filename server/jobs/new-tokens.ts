import { v7 as uuidv7 } from "uuid";
import * as core from "../../core/index.ts";
import {
  assetIdOf,
  assetType,
  type Creation,
  LOCK_MINTER,
  NO_CAP,
  type OwnToken,
  readTokenCreation,
  registrationCalldata,
  tokenCreationInput,
} from "../../core/internal.ts";
import { ServerError } from "../http/errors.ts";

/** What new tokens need of the settlement chain. */
export interface TokenChain
  extends Pick<core.L1Reader, "registration" | "finalizedBlockNumber" | "isTransferable" | "token"> {
  creation(txHash: core.Hash): Promise<Creation | null>;
  /** Whether the settlement contract mints it; null when the token does not say. */
  isMinter(token: core.Address): Promise<boolean | null>;
}

interface Call {
  readonly from: core.Address;
  readonly to: core.Address;
  readonly data: core.Hex;
}

/** How far a new token is, and the transactions that it still needs. */
export interface TokenProgress {
  readonly status: "sent" | "created" | "registered" | "added";
  readonly contractAddress: core.Address | null;
  readonly lock: Call | null;
  readonly register: Omit<Call, "from"> | null;
  readonly asset: core.Asset | null;
}

const SENT: TokenProgress = { status: "sent", contractAddress: null, lock: null, register: null, asset: null };
const NOBODY = `0x${"00".repeat(20)}`;
const NOT_MINTER = "Another account than the settlement contract mints this token. Create another token.";
const NOT_OURS =
  "This transaction did not create a token of this package for this application and this settlement contract. Create one with the form.";

/**
 * New tokens of applications: the admin's wallet creates a token of this package and registers it, and pays for both.
 * The creating transaction names the application, so nobody adds another's token. The operator pays nothing.
 */
export class NewTokens {
  /** Whether the operator lets applications add tokens. */
  readonly areOn: boolean;
  readonly #chain: (() => Promise<Partial<TokenChain>>) | undefined;

  constructor(areOn: boolean, chain: (() => Promise<Partial<TokenChain>>) | undefined) {
    this.areOn = areOn && chain !== undefined;
    this.#chain = chain;
  }

  /**
   * The transaction that creates a token. Throws `new_tokens_off`.
   *
   * @param uriOf - where this server serves the asset's metadata
   */
  creation(engine: core.Engine, applicationId: string, token: OwnToken, uriOf: (assetId: string) => string) {
    if (!this.areOn) throw new ServerError("new_tokens_off");
    const to = { applicationId, salt: uuidv7() };
    const assetId = assetIdOf(to);
    const { contract, chainId } = engine.settlement;
    const named = { ...token, uri: token.uri ?? uriOf(assetId) };
    return { assetId, chainId, data: tokenCreationInput(contract, named, to) };
  }

  /**
   * Reads how far the token of a transaction is, and adds its asset once the registration is final. Rejects with
   * `new_tokens_off`, `validation_failed` for another transaction, `asset_exists`, `l1_failed`.
   */
  async progress(engine: core.Engine, applicationId: string, txHash: core.Hash): Promise<TokenProgress> {
    const chain = await this.#on();
    const { contract: minter, chainId } = engine.settlement;
    const created = await chain.creation(txHash);
    if (created === null) return SENT;
    const token = readTokenCreation(minter, created.input);
    // An issuer could hold up batches with the mints of others.
    if (token?.applicationId !== applicationId || token.issuer !== NOBODY)
      throw new core.MintmarkError("validation_failed", NOT_OURS);
    const { contract } = created;
    const at = { contractAddress: contract, lock: null, register: null, asset: null };
    const id = { chainId, assetType: assetType(token.standard, contract, token.quantum ?? 1n) };
    if ((await chain.isMinter(contract)) !== true) throw new core.MintmarkError("validation_failed", NOT_MINTER);
    const { minterLocked } = await chain.token(contract, token.standard);
    const isRegistered = (await chain.registration(chainId, id.assetType)) !== null;
    if (!minterLocked || !isRegistered) {
      const lock = { from: token.admin, to: contract, data: LOCK_MINTER };
      const register = { to: minter, data: registrationCalldata(chainId, contract, token) };
      return { ...at, status: "created", lock: minterLocked ? null : lock, register: isRegistered ? null : register };
    }
    const final = await chain.finalizedBlockNumber();
    if (created.blockNumber > final || (await chain.registration(chainId, id.assetType, final)) === null)
      return { ...at, status: "registered" };
    const assetId = assetIdOf(token);
    await this.#add(engine, token, assetId, contract);
    await engine.operator.recordRegistered(assetId, { minterLocked, transferable: await chain.isTransferable(id) });
    return { ...at, status: "added", asset: await engine.assets.get(applicationId, assetId) };
  }

  /** Adds the asset, unless an earlier call did. */
  async #add(
    engine: core.Engine,
    token: NonNullable<ReturnType<typeof readTokenCreation>>,
    assetId: string,
    contract: core.Address,
  ) {
    const { applicationId, standard, name, symbol, quantum = 1n, blobScheme = "mintmark", cap = NO_CAP } = token;
    const decimals = standard === "erc20" ? 18 : 0;
    const supplyCap = standard !== "erc20" || cap === NO_CAP ? null : cap / quantum;
    const facts = { standard, name, symbol, quantum, blobScheme, decimals, supplyCap, contractAddress: contract };
    try {
      await engine.assets.add({ ...facts, assetId, applicationId });
    } catch (error) {
      if (!(error instanceof core.MintmarkError) || error.code !== "asset_exists") throw error;
      const known = await engine.assets.get(applicationId, assetId).catch(() => null);
      if (known?.contractAddress !== contract) throw error;
    }
  }

  async #on(): Promise<TokenChain> {
    if (!this.areOn || this.#chain === undefined) throw new ServerError("new_tokens_off");
    const chain = await this.#chain();
    if (chain.creation === undefined) throw new ServerError("new_tokens_off");
    return chain as TokenChain;
  }
}
