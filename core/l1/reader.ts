import type {
  ContractFunctionArgs,
  ContractFunctionName,
  ContractFunctionReturnType,
  TransactionReceipt,
} from "viem";
import * as viem from "viem";
import * as actions from "viem/actions";
import { MintmarkError } from "../errors.ts";
import { CALL_GAS, CONSENT_GAS, GAS_PER_BYTE, SIGNATURE_GAS } from "../gas.ts";
import {
  type Address,
  type Hash,
  type Hex,
  STANDARDS,
  type Standard,
  type VaultId,
} from "../model.ts";
import type * as ports from "../ports.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { INFINITY, versionedHash } from "../protocol/kzg.ts";
import type { TransferSession } from "../protocol/transfer-rules.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import {
  MODE_VALUE,
  provenVaultArguments,
  STANDARD_VALUE,
  transferredArguments,
} from "./arguments.ts";
import {
  askInBulk,
  askL1,
  isBusy,
  isRefusal,
  type L1Connection,
  orIfSilent,
  saysNothing,
} from "./connection.ts";
import { decodeEvents, logReader } from "./logs.ts";
import { revertReason } from "./reason.ts";
import { schemeOf, ViemTokens } from "./tokens.ts";

const WALLET_ABI = viem.parseAbi([
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
]);
/** The answer of `isValidSignature` to a valid signature. */
const SIGNATURE_TAKEN = "0x1626ba7e";

/** The precompile of EIP-4844, and an opening that it accepts: of an element of a blob of zeros. */
const POINT_EVALUATION = "0x000000000000000000000000000000000000000a";
const ZERO_OPENING = viem.concat([
  versionedHash(INFINITY),
  viem.zeroHash,
  viem.zeroHash,
  INFINITY,
  INFINITY,
]);

const NO_FINALITY =
  "the node knows no finalized block. On a chain without finality, set MINTMARK_CONFIRMATIONS " +
  "(in code: `finality`) to the number of blocks after which a block stays.";

/** Registrations per call: an answer has at most 24,576 bytes (EIP-170), 288 for each. */
const ASSETS_PER_CALL = 84;

function registrationOf(of: ViewAnswer<"asset">): ports.L1Registration | null {
  const [value, token, quantum, scheme, since] = of;
  const standard = STANDARDS.find((name) => STANDARD_VALUE[name] === value);
  if (standard === undefined) return null;
  return {
    standard,
    token: token.toLowerCase() as Address,
    quantum,
    blobScheme: schemeOf(scheme) ?? "imx",
    since,
  };
}

export interface Creation {
  readonly contract: Address;
  readonly input: Hex;
  readonly blockNumber: bigint;
}

type ViewAnswer<F extends "asset" | "issuerOf"> = ContractFunctionReturnType<typeof abi, "view", F>;

function nullIfMissing(error: unknown): null {
  if (
    error instanceof viem.TransactionNotFoundError ||
    error instanceof viem.TransactionReceiptNotFoundError
  )
    return null;
  throw error;
}

/** {@link L1Reader} over a viem client. */
export class ViemReader extends ViemTokens implements ports.L1Reader, ports.IssuerReader {
  protected readonly logs = logReader(this.client, this.settlement.contract);
  protected readonly view: ReturnType<typeof viewsOf<typeof abi>> = viewsOf(this.connection, abi);

  async opensBlobs(): Promise<boolean> {
    const { data = "0x" } = await askL1("asking for the precompile 0x0a", () =>
      actions
        .call(this.client, { to: POINT_EVALUATION, data: ZERO_OPENING })
        .catch((error: unknown) => {
          // Some chains stop a call of a precompile that they lack.
          const stopped =
            error instanceof viem.BaseError &&
            error.walk((inner) => inner instanceof viem.ExecutionRevertedError);
          if (stopped || revertReason(error) !== null) return { data: "0x" as Hex };
          throw error;
        }),
    );
    return viem.size(data) === 64;
  }

  blockNumber(): Promise<bigint> {
    return askL1("asking for the newest block", () => actions.getBlockNumber(this.client));
  }

  /**
   * The contract that a transaction created; null while no block has it. Rejects for one that
   * created nothing, or failed.
   */
  async creation(txHash: Hash): Promise<Creation | null> {
    const doing = `reading transaction ${txHash}`;
    const receipt = await askL1(doing, () => minedReceipt(this.connection, txHash));
    if (receipt === null) return null;
    const { status, contractAddress, blockNumber } = receipt;
    if (status !== "success" || !contractAddress)
      throw new MintmarkError(
        "validation_failed",
        `Transaction ${txHash} created no contract, or failed.`,
      );
    const { input } = await askL1(doing, () =>
      actions.getTransaction(this.client, { hash: txHash }),
    );
    return { contract: contractAddress.toLowerCase() as Address, input, blockNumber };
  }

  async gasUsed(txHash: Hash): Promise<bigint> {
    const ask = () => actions.getTransactionReceipt(this.client, { hash: txHash });
    const receipt = await askL1(`reading transaction ${txHash}`, ask);
    return receipt.gasUsed;
  }

  async finalizedBlockNumber(): Promise<bigint> {
    const { finality } = this.connection;
    if (finality === "finalized") {
      const ask = () => actions.getBlock(this.client, { blockTag: finality });
      return askL1("asking for the finalized block", async () => {
        try {
          return (await ask()).number;
        } catch (error) {
          const isUnknown =
            error instanceof viem.BlockNotFoundError || (isRefusal(error) && !isBusy(error));
          if (isUnknown) throw new MintmarkError("l1_failed", NO_FINALITY, { cause: error });
          throw error;
        }
      });
    }
    const newest = await this.blockNumber();
    return newest > finality.confirmations ? newest - finality.confirmations : 0n;
  }

  async block(at: bigint | "latest"): Promise<ports.L1Block | null> {
    return askL1(`reading block ${at}`, async () => {
      try {
        const where = at === "latest" ? { blockTag: at } : { blockNumber: at };
        const { number, hash, timestamp, parentBeaconBlockRoot } = await actions.getBlock(
          this.client,
          where,
        );
        if (number === null || hash === null)
          throw new MintmarkError("l1_failed", `the node returned a pending block for ${at}`);
        return { number, hash, timestamp, ...(parentBeaconBlockRoot && { parentBeaconBlockRoot }) };
      } catch (error) {
        if (error instanceof viem.BlockNotFoundError) return null;
        throw error;
      }
    });
  }

  async state(at?: bigint): Promise<ports.L1State> {
    const blockNumber = at ?? (await this.blockNumber());
    const view = { abi, address: this.settlement.contract } as const;
    const contracts = [
      { ...view, functionName: "batchCounts" },
      { ...view, functionName: "stateRoot", args: [MODE_VALUE.validium] },
      { ...view, functionName: "stateRoot", args: [MODE_VALUE["zk-rollup"]] },
      { ...view, functionName: "stateCommitment" },
      { ...view, functionName: "history" },
    ] as const;
    return askL1("reading the committed state", async () => {
      // One call, because nodes behind one address can differ about a block of one number.
      const once = {
        contracts,
        blockNumber,
        deployless: true,
        batchSize: 0,
        allowFailure: false,
      } as const;
      const [counted, rootValidium, rootRollup, commitment, history] = await actions.multicall(
        this.client,
        once,
      );
      const [validium, rollup] = counted;
      const counts = { countValidium: Number(validium), countRollup: Number(rollup) };
      return { ...counts, rootValidium, rootRollup, commitment, history };
    });
  }

  async rollupData(txHash: Hash): Promise<Uint8Array | null> {
    const transaction = await askL1(`reading transaction ${txHash}`, () =>
      actions.getTransaction(this.client, { hash: txHash }).catch(nullIfMissing),
    );
    if (transaction === null) return null;
    const { input } = transaction;
    // The contract takes rollup batches from plain accounts only, so the commit is the
    // transaction's own call.
    const { functionName, args } = await askL1(`decoding transaction ${txHash}`, async () =>
      viem.decodeFunctionData({ abi, data: input }),
    );
    if (functionName === "commitBlobBatch") return null;
    if (functionName === "commitRollupBatch") return hexToBytes(args[3]);
    if (functionName === "commitTransferBatch") return hexToBytes(args[2]);
    throw new MintmarkError(
      "l1_failed",
      `transaction ${txHash} calls ${functionName}, which commits no rollup batch`,
    );
  }

  verifyVault(proven: ports.ProvenVault): Promise<bigint> {
    return this.view(
      `verifying vault ${proven.vault.vaultId}`,
      "verifyVault",
      provenVaultArguments(proven),
    );
  }

  async verifyTransferred(proven: ports.ProvenVault): Promise<ports.TransferredTip> {
    const doing = `verifying the transfers of vault ${proven.vault.vaultId}`;
    const [owner, left] = await this.view(doing, "verifyTransferred", transferredArguments(proven));
    return { owner: owner.toLowerCase() as Address, left };
  }

  async isOperator(account: Address): Promise<boolean> {
    const doing = `asking whether ${account} is an operator`;
    return this.view(doing, "hasRole", [await this.view(doing, "OPERATOR_ROLE", []), account]);
  }

  async registration(
    chainId: bigint,
    assetType: Hash,
    at?: bigint,
  ): Promise<ports.L1Registration | null> {
    return (await this.registrations([{ chainId, assetType }], at))[0] ?? null;
  }

  async registrations(
    assets: readonly ports.AssetId[],
    at?: bigint,
  ): Promise<(ports.L1Registration | null)[]> {
    const answers = await this.ofAssets("asset", "reading the registrations", assets, at);
    return answers.map((answer) => answer && registrationOf(answer));
  }

  isTransferable({ chainId, assetType }: ports.AssetId, at?: bigint): Promise<boolean> {
    const [doing, args] = [
      `asking whether ${assetType} is transferable`,
      [chainId, BigInt(assetType)],
    ] as const;
    // A contract without transfers does not know the function.
    return orIfSilent(this.view(doing, "isTransferable", args, at), false);
  }

  isMadeOnly({ chainId, assetType }: ports.AssetId, at?: bigint): Promise<boolean> {
    const args = [chainId, BigInt(assetType)] as const;
    const asked = this.view(`asking whether ${assetType} is made only`, "isMadeOnly", args, at);
    return orIfSilent(asked, false);
  }

  /** Whether tokens can come back: the contract was deployed with code that makes vaults. */
  async hasMakings(): Promise<boolean> {
    const asked = this.view("asking for the code of makings", "makingsCode", []);
    // A mirror does not know the function.
    return BigInt(await orIfSilent(asked, viem.zeroAddress)) !== 0n;
  }

  /**
   * The vaults that L1 made in a transaction; null while it is not mined. Rejects with `l1_failed`
   * when it made none.
   */
  async making(txHash: Hash): Promise<ports.MadeEvent | null> {
    const doing = `looking for transaction ${txHash}`;
    const receipt = await askL1(doing, () => minedReceipt(this.connection, txHash));
    return receipt && this.madeIn(receipt);
  }

  protected madeIn({ logs, transactionHash }: TransactionReceipt): ports.MadeEvent {
    // Any contract can emit an event that looks like one of L1's.
    const { contract } = this.settlement;
    const own = logs.filter(({ address }) => address.toLowerCase() === contract);
    const made = decodeEvents(own).find((event) => event.type === "made");
    if (made !== undefined) return made;
    throw new MintmarkError("l1_failed", `transaction ${transactionHash} made no vault`);
  }

  /**
   * The session of an owner with a key, of zeros when there is none; null of a contract without
   * transfers.
   */
  async session(owner: Address, key: Address): Promise<TransferSession | null> {
    const asked = this.view(`reading the session of ${owner} with ${key}`, "session", [owner, key]);
    const found = await orIfSilent(asked, null);
    if (found === null) return null;
    const [authorizedAt, until, revokedAt, limit, assetType] = found;
    return {
      authorizedAt,
      until,
      revokedAt,
      limit,
      assetType: viem.numberToHex(assetType, { size: 32 }),
    };
  }

  async issuers(assets: readonly ports.AssetId[]): Promise<(ports.AssetIssuer | null)[]> {
    return (await this.ofAssets("issuerOf", "reading the issuers", assets)).map((answer) => {
      const [issuer, epoch, suspended] = answer ?? [viem.zeroAddress, 0n, false];
      return issuer === viem.zeroAddress
        ? null
        : { issuer: issuer.toLowerCase() as Address, epoch, suspended };
    });
  }

  walletTakes(wallet: Address, digest: Hash, signature: Hex, most = CONSENT_GAS): Promise<boolean> {
    const gas = most + CALL_GAS + BigInt(viem.size(signature)) * GAS_PER_BYTE;
    const ask = {
      abi: WALLET_ABI,
      address: wallet,
      functionName: "isValidSignature",
      gas,
    } as const;
    return askL1(`asking ${wallet} about a signature`, async () => {
      const answer = await orIfSilent(
        actions.readContract(this.client, { ...ask, args: [digest, signature] }),
        null,
      );
      return answer === SIGNATURE_TAKEN;
    });
  }

  withdrawn(vaultId: VaultId, standard: Standard): Promise<bigint> {
    const args = [vaultId, STANDARD_VALUE[standard]] as const;
    return this.view(`reading what was withdrawn of vault ${vaultId}`, "withdrawn", args);
  }

  maturity(): Promise<bigint> {
    return this.view("reading the maturity time", "maturity", []);
  }

  async committee(): Promise<{ committeeHash: Hash; epoch: bigint }> {
    const [committeeHash, epoch] = await this.view("reading the committee", "committee", []);
    return { committeeHash, epoch };
  }

  verifySignature(signer: Address, digest: Hash, signature: Hex): Promise<boolean> {
    return this.walletTakes(signer, digest, signature, SIGNATURE_GAS);
  }

  async events(fromBlock: bigint, toBlock: bigint): Promise<readonly ports.L1Event[]> {
    const doing = `reading events of blocks ${fromBlock} to ${toBlock}`;
    return decodeEvents(await askL1(doing, () => this.logs(fromBlock, toBlock)));
  }

  /**
   * A view of the registry for many assets, many in one call; null at a past block that lacks the
   * contract.
   */
  protected ofAssets<F extends "asset" | "issuerOf">(
    view: F,
    doing: string,
    assets: readonly ports.AssetId[],
    at?: bigint,
  ): Promise<readonly (ViewAnswer<F> | null)[]> {
    const read = { abi, address: this.settlement.contract, functionName: view };
    const ask = async (
      some: readonly ports.AssetId[],
    ): Promise<readonly (ViewAnswer<F> | null)[]> => {
      const contracts = some.map(({ chainId, assetType }) => ({
        ...read,
        args: [chainId, BigInt(assetType)],
      }));
      const many = {
        contracts,
        deployless: true,
        batchSize: 0,
        allowFailure: false,
        blockNumber: at,
      };
      try {
        return (await actions.multicall(this.client, many as never)) as never;
      } catch (error) {
        if (at !== undefined && saysNothing(error)) return some.map(() => null);
        throw error;
      }
    };
    return askInBulk(`${doing} of ${assets.length} assets`, assets, ASSETS_PER_CALL, ask);
  }
}

/** Asks views of a contract, as of a block. */
export function viewsOf<const A extends viem.Abi>({ client, settlement }: L1Connection, abi: A) {
  return <
    F extends ContractFunctionName<A, "view" | "pure">,
    Args extends ContractFunctionArgs<A, "view" | "pure", F>,
  >(
    doing: string,
    functionName: F,
    args: Args,
    blockNumber?: bigint,
  ): Promise<ContractFunctionReturnType<A, "view" | "pure", F, Args>> => {
    const read = { abi, address: settlement.contract, functionName, args, blockNumber };
    // viem's types cannot follow a union of functions; the signature above ties arguments and
    // answer to the function.
    return askL1(doing, () => actions.readContract(client, read as never)) as never;
  };
}

/** The receipt of a transaction; null while it is not mined. */
export function minedReceipt(
  { client }: L1Connection,
  hash: Hash,
): Promise<TransactionReceipt | null> {
  return actions.getTransactionReceipt(client, { hash }).catch(nullIfMissing);
}
