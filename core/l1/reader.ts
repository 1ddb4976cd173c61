import {
  BaseError,
  BlockNotFoundError,
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
  concat,
  decodeFunctionData,
  ExecutionRevertedError,
  numberToHex,
  parseAbi,
  size,
  TransactionNotFoundError,
  TransactionReceiptNotFoundError,
  zeroAddress,
  zeroHash,
} from "viem";
import { MintmarkError } from "../errors.ts";
import {
  type Address,
  BLOB_SCHEMES,
  type BlobScheme,
  type Hash,
  type Hex,
  STANDARDS,
  type Standard,
  type VaultId,
} from "../model.ts";
import type {
  AssetId,
  AssetIssuer,
  IssuerReader,
  L1Block,
  L1Event,
  L1Reader,
  L1Registration,
  L1State,
  L1Token,
  L1Tokens,
  ProvenVault,
  Settlement,
  TokenMint,
  TransferredTip,
} from "../ports.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { versionedHash } from "../protocol/kzg.ts";
import type { TransferSession } from "../protocol/transfer-rules.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import { MODE_VALUE, provenVaultArguments, SCHEME_VALUE, transferredArguments } from "./arguments.ts";
import { askInBulk } from "./bulk.ts";
import type { L1Connection } from "./connection.ts";
import { askL1, orIfSilent, revertReason, saysNothing } from "./failure.ts";
import { decodeEvents, LogReader } from "./logs.ts";
import { holdsMinterRole, tokenCap, tokenHolding, tokenOwners, tokenScheme, trialOf, trialsOf } from "./tokens.ts";

/** Optional views of a token. Foreign tokens need none of them. */
const TOKEN_ABI = parseAbi([
  "function name() view returns (string)",
  "function symbol() view returns (string)",
  "function decimals() view returns (uint8)",
  "function minterLocked() view returns (bool)",
]);

/** The contract's values of `Standard`. */
export const STANDARD_VALUE: Readonly<Record<Standard, number>> = { erc20: 1, erc721: 2, erc1155: 3 };

function schemeOf(value: number | null): BlobScheme | null {
  return BLOB_SCHEMES.find((name) => SCHEME_VALUE[name] === value) ?? null;
}

/** Gas that the contract gives an issuer's wallet contract at a commit. */
export const CONSENT_GAS = 100_000n;
/** Most gas of a wallet contract that is asked off-chain about a signature. A passkey without a precompile takes 330,000. */
const SIGNATURE_GAS = 1_000_000n;
/** Gas of a single call: the transaction, the ABI encoding around a signature, and each byte of calldata. */
const CALL_GAS = 25_000n;
const CALLDATA_BYTE_GAS = 16n;
const WALLET_ABI = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
/** The answer of `isValidSignature` to a valid signature. */
const SIGNATURE_TAKEN = "0x1626ba7e";

/** The precompile of EIP-4844, and an opening that it accepts: of an element of a blob of zeros. */
const POINT_EVALUATION = "0x000000000000000000000000000000000000000a";
const INFINITY: Hex = `0xc0${"00".repeat(47)}`;
const ZERO_OPENING = concat([versionedHash(INFINITY), zeroHash, zeroHash, INFINITY, INFINITY]);

/** Registrations per call: an answer has at most 24,576 bytes (EIP-170), 288 for each. */
const ASSETS_PER_CALL = 84;

/** A registry's record of an asset; null when it has none. */
function registrationOf(
  value: number,
  token: Address,
  quantum: bigint,
  scheme: number,
  since: bigint,
): L1Registration | null {
  const standard = STANDARDS.find((name) => STANDARD_VALUE[name] === value);
  if (standard === undefined) return null;
  return { standard, token: token.toLowerCase() as Address, quantum, blobScheme: schemeOf(scheme) ?? "imx", since };
}

/** A contract, and the transaction that created it. */
export interface Creation {
  readonly contract: Address;
  readonly input: Hex;
  readonly blockNumber: bigint;
}

type View = ContractFunctionName<typeof abi, "view" | "pure">;

/** A past block may lack the contract, and so the registration. */
function nullBeforeDeployment(at: bigint | undefined): (error: unknown) => null {
  return (error) => {
    if (at !== undefined && saysNothing(error)) return null;
    throw error;
  };
}

function nullIfMissing(error: unknown): null {
  if (error instanceof TransactionNotFoundError || error instanceof TransactionReceiptNotFoundError) return null;
  throw error;
}

/** {@link L1Reader} over a viem client. */
export class ViemReader implements L1Reader, L1Tokens, IssuerReader {
  readonly settlement: Settlement;
  protected readonly connection: L1Connection;
  protected readonly logs: LogReader;

  constructor(connection: L1Connection) {
    this.connection = connection;
    this.settlement = connection.settlement;
    this.logs = new LogReader(connection.client, connection.settlement.contract);
  }

  async opensBlobs(): Promise<boolean> {
    const { client } = this.connection;
    const { data = "0x" } = await askL1("asking for the precompile 0x0a", () =>
      client.call({ to: POINT_EVALUATION, data: ZERO_OPENING }).catch((error: unknown) => {
        // Some chains stop a call of a precompile that they lack.
        const stopped = error instanceof BaseError && error.walk((inner) => inner instanceof ExecutionRevertedError);
        if (stopped || revertReason(error) !== null) return { data: "0x" as Hex };
        throw error;
      }),
    );
    return size(data) === 64;
  }

  blockNumber(): Promise<bigint> {
    return askL1("asking for the newest block", () => this.connection.client.getBlockNumber());
  }

  /** What a transaction created; null while no block has it. Rejects for one that created nothing, or failed. */
  async creation(txHash: Hash): Promise<Creation | null> {
    const { client } = this.connection;
    const doing = `reading transaction ${txHash}`;
    const receipt = await askL1(doing, () => client.getTransactionReceipt({ hash: txHash }).catch(nullIfMissing));
    if (receipt === null) return null;
    const { status, contractAddress, blockNumber } = receipt;
    if (status !== "success" || !contractAddress)
      throw new MintmarkError("validation_failed", `Transaction ${txHash} created no contract, or failed.`);
    const { input } = await askL1(doing, () => client.getTransaction({ hash: txHash }));
    return { contract: contractAddress.toLowerCase() as Address, input, blockNumber };
  }

  /** Gas that a mined transaction used. */
  async gasUsed(txHash: Hash): Promise<bigint> {
    const { client } = this.connection;
    const receipt = await askL1(`reading transaction ${txHash}`, () => client.getTransactionReceipt({ hash: txHash }));
    return receipt.gasUsed;
  }

  async finalizedBlockNumber(): Promise<bigint> {
    const { client, finality } = this.connection;
    if (finality === "finalized") {
      const block = await askL1("asking for the finalized block", () => client.getBlock({ blockTag: "finalized" }));
      return block.number;
    }
    const newest = await this.blockNumber();
    return newest > finality.confirmations ? newest - finality.confirmations : 0n;
  }

  async block(at: bigint | "latest"): Promise<L1Block | null> {
    return askL1(`reading block ${at}`, async () => {
      try {
        const where = at === "latest" ? { blockTag: at } : { blockNumber: at };
        const { number, hash, timestamp, parentBeaconBlockRoot } = await this.connection.client.getBlock(where);
        if (number === null || hash === null)
          throw new MintmarkError("l1_failed", `the node returned a pending block for ${at}`);
        return { number, hash, timestamp, ...(parentBeaconBlockRoot && { parentBeaconBlockRoot }) };
      } catch (error) {
        if (error instanceof BlockNotFoundError) return null;
        throw error;
      }
    });
  }

  async state(at?: bigint): Promise<L1State> {
    // All from one block, so that roots and counts belong together.
    const blockNumber = at ?? (await this.blockNumber());
    return askL1("reading the committed state", async () => {
      const [[validium, rollup], rootValidium, rootRollup, commitment, history] = await Promise.all([
        this.view("batchCounts", [], blockNumber),
        this.view("stateRoot", [MODE_VALUE.validium], blockNumber),
        this.view("stateRoot", [MODE_VALUE["zk-rollup"]], blockNumber),
        this.view("stateCommitment", [], blockNumber),
        this.view("history", [], blockNumber),
      ]);
      const counts = { countValidium: Number(validium), countRollup: Number(rollup) };
      return { ...counts, rootValidium, rootRollup, commitment, history };
    });
  }

  async rollupData(txHash: Hash): Promise<Uint8Array | null> {
    const transaction = await askL1(`reading transaction ${txHash}`, () =>
      this.connection.client.getTransaction({ hash: txHash }).catch(nullIfMissing),
    );
    if (transaction === null) return null;
    const { input } = transaction;
    // The contract takes rollup batches from plain accounts only, so the commit is the transaction's own call.
    const { functionName, args } = await askL1(`decoding transaction ${txHash}`, async () =>
      decodeFunctionData({ abi, data: input }),
    );
    if (functionName === "commitBlobBatch") return null;
    if (functionName === "commitRollupBatch") return hexToBytes(args[3]);
    if (functionName === "commitTransferBatch") return hexToBytes(args[2]);
    throw new MintmarkError("l1_failed", `transaction ${txHash} calls ${functionName}, which commits no rollup batch`);
  }

  verifyVault(proven: ProvenVault): Promise<bigint> {
    const doing = `verifying vault ${proven.vault.vaultId}`;
    return askL1(doing, () => this.view("verifyVault", provenVaultArguments(proven)));
  }

  async verifyTransferred(proven: ProvenVault): Promise<TransferredTip> {
    const doing = `verifying the transfers of vault ${proven.vault.vaultId}`;
    const [owner, left] = await askL1(doing, () => this.view("verifyTransferred", transferredArguments(proven)));
    return { owner: owner.toLowerCase() as Address, left };
  }

  isOperator(account: Address): Promise<boolean> {
    return askL1(`asking whether ${account} is an operator`, async () =>
      this.view("hasRole", [await this.view("OPERATOR_ROLE", []), account]),
    );
  }

  async registration(chainId: bigint, assetType: Hash, at?: bigint): Promise<L1Registration | null> {
    const answer = await askL1(`reading the registration of ${assetType}`, () =>
      this.view("asset", [chainId, BigInt(assetType)], at).catch(nullBeforeDeployment(at)),
    );
    return answer && registrationOf(...answer);
  }

  registrations(assets: readonly AssetId[], at?: bigint): Promise<(L1Registration | null)[]> {
    const { contract: address } = this.settlement;
    const block = at === undefined ? {} : { blockNumber: at };
    return askInBulk(assets, ASSETS_PER_CALL, async (some) => {
      const contracts = some.map(
        ({ chainId, assetType }) =>
          ({ abi, address, functionName: "asset", args: [chainId, BigInt(assetType)] }) as const,
      );
      const answers = await askL1(`reading the registrations of ${some.length} assets`, () =>
        this.connection.client
          .multicall({ contracts, deployless: true, batchSize: 0, allowFailure: false, ...block })
          .catch(nullBeforeDeployment(at)),
      );
      return answers?.map((answer) => registrationOf(...answer)) ?? some.map(() => null);
    });
  }

  isTransferable({ chainId, assetType }: AssetId, at?: bigint): Promise<boolean> {
    // A contract without transfers does not know the function.
    return askL1(`asking whether ${assetType} is transferable`, () =>
      orIfSilent(this.view("isTransferable", [chainId, BigInt(assetType)], at), false),
    );
  }

  /** The session of an owner with a key, of zeros when there is none; null of a contract without transfers. */
  session(owner: Address, key: Address): Promise<TransferSession | null> {
    return askL1(`reading the session of ${owner} with ${key}`, async () => {
      const found = await orIfSilent(this.view("session", [owner, key]), null);
      if (found === null) return null;
      const [authorizedAt, until, revokedAt, limit, assetType] = found;
      return { authorizedAt, until, revokedAt, limit, assetType: numberToHex(assetType, { size: 32 }) };
    });
  }

  issuers(assets: readonly AssetId[]): Promise<(AssetIssuer | null)[]> {
    const { contract: address } = this.settlement;
    return askInBulk(assets, ASSETS_PER_CALL, async (some) => {
      const contracts = some.map(
        ({ chainId, assetType }) =>
          ({ abi, address, functionName: "issuerOf", args: [chainId, BigInt(assetType)] }) as const,
      );
      const answers = await askL1(`reading the issuers of ${some.length} assets`, () =>
        this.connection.client.multicall({ contracts, deployless: true, batchSize: 0, allowFailure: false }),
      );
      return answers.map(([issuer, epoch, suspended]) =>
        issuer === zeroAddress ? null : { issuer: issuer.toLowerCase() as Address, epoch, suspended },
      );
    });
  }

  walletTakes(wallet: Address, digest: Hash, signature: Hex, most = CONSENT_GAS): Promise<boolean> {
    const { client } = this.connection;
    const gas = most + CALL_GAS + BigInt(size(signature)) * CALLDATA_BYTE_GAS;
    const ask = { abi: WALLET_ABI, address: wallet, functionName: "isValidSignature", gas } as const;
    return askL1(`asking ${wallet} about a signature`, async () => {
      const answer = await orIfSilent(client.readContract({ ...ask, args: [digest, signature] }), null);
      return answer === SIGNATURE_TAKEN;
    });
  }

  async token(contract: Address, standard: Standard): Promise<L1Token> {
    const [name, symbol, decimals, minterLocked] = await Promise.all([
      this.#tokenSays(contract, "name", ""),
      this.#tokenSays(contract, "symbol", ""),
      standard === "erc20" ? this.#tokenSays(contract, "decimals", 0) : 0,
      this.#tokenSays(contract, "minterLocked", null),
    ]);
    return { name, symbol, decimals, minterLocked };
  }

  /** The blob scheme that a token states to the registry; null when it states none. */
  async statedScheme(contract: Address): Promise<BlobScheme | null> {
    const { client } = this.connection;
    const stated = await askL1(`asking ${contract} for its blob scheme`, () => tokenScheme(client, contract));
    return schemeOf(stated === null ? null : Number(stated));
  }

  supplyCap(contract: Address): Promise<bigint | null> {
    return askL1(`asking ${contract} for its cap`, () => tokenCap(this.connection.client, contract));
  }

  holding(contract: Address, standard: Standard, account: Address, tokenId: bigint | null): Promise<bigint> {
    return askL1(`asking ${contract} what ${account} holds`, () =>
      tokenHolding(this.connection.client, contract, standard, account, tokenId),
    );
  }

  tryMint(token: Address, mint: TokenMint, at: bigint): Promise<string | null> {
    const { client } = this.connection;
    return askL1(`trying a mint of ${token}`, () => trialOf(client, this.settlement.contract, token, mint, at));
  }

  tryMints(token: Address, mints: readonly TokenMint[], at: bigint): Promise<readonly (string | null)[]> {
    const { client } = this.connection;
    return askL1(`trying mints of ${token}`, () => trialsOf(client, this.settlement.contract, token, mints, at));
  }

  isMinter(token: Address): Promise<boolean | null> {
    return askL1(`asking ${token} for its minter`, () =>
      holdsMinterRole(this.connection.client, token, this.settlement.contract),
    );
  }

  tokenOwners(token: Address, tokenIds: readonly bigint[], at: bigint): Promise<readonly (Address | null)[]> {
    return askL1(`asking ${token} for owners`, () => tokenOwners(this.connection.client, token, tokenIds, at));
  }

  withdrawn(vaultId: VaultId, standard: Standard): Promise<bigint> {
    const doing = `reading what was withdrawn of vault ${vaultId}`;
    return askL1(doing, () => this.view("withdrawn", [vaultId, STANDARD_VALUE[standard]]));
  }

  maturity(): Promise<bigint> {
    return askL1("reading the maturity time", () => this.view("maturity", []));
  }

  async committee(): Promise<{ committeeHash: Hash; epoch: bigint }> {
    const [committeeHash, epoch] = await askL1("reading the committee", () => this.view("committee", []));
    return { committeeHash, epoch };
  }

  verifySignature(signer: Address, digest: Hash, signature: Hex): Promise<boolean> {
    return this.walletTakes(signer, digest, signature, SIGNATURE_GAS);
  }

  async events(fromBlock: bigint, toBlock: bigint): Promise<readonly L1Event[]> {
    const doing = `reading events of blocks ${fromBlock} to ${toBlock}`;
    return decodeEvents(await askL1(doing, () => this.logs.read(fromBlock, toBlock)));
  }

  /** One optional view of a token; `otherwise` when the token lacks it. A silent chain is still an error. */
  async #tokenSays<K extends (typeof TOKEN_ABI)[number]["name"], D>(contract: Address, functionName: K, otherwise: D) {
    const { client } = this.connection;
    return askL1(`asking ${contract} for its ${functionName}`, () =>
      orIfSilent<unknown, D>(client.readContract({ abi: TOKEN_ABI, address: contract, functionName }), otherwise),
    ) as Promise<ContractFunctionReturnType<typeof TOKEN_ABI, "view", K> | D>;
  }

  /** Asks a view of the contract, as of a block. */
  protected view<F extends View, A extends ContractFunctionArgs<typeof abi, "view" | "pure", F>>(
    functionName: F,
    args: A,
    blockNumber?: bigint,
  ): Promise<ContractFunctionReturnType<typeof abi, "view" | "pure", F, A>> {
    const address = this.settlement.contract;
    // viem's types cannot follow a union of functions; the signature above ties arguments and answer to the function.
    return this.connection.client.readContract({ abi, address, functionName, args, blockNumber } as never) as never;
  }
}
