import type { TransactionReceipt } from "viem";
import * as viem from "viem";
import * as actions from "viem/actions";
import { invalid, MintmarkError } from "../errors.ts";
import { CALL_GAS, CONSENT_GAS, GAS_PER_BYTE, SIGNATURE_GAS, TRANSACTION_GAS } from "../gas.ts";
import type { Address, Hash, Hex } from "../model.ts";
import type { IssuerReader, L1Committer, L1Reader } from "../ports.ts";
import { INFINITY, versionedHash } from "../protocol/versioned-hash.ts";
import { askL1, isBusy, isRefusal, type L1Connection, orIfSilent } from "./connection.ts";
import { revertReason } from "./reason.ts";

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

export interface ContractCreation {
  readonly contract: Address;
  readonly input: Hex;
  readonly blockNumber: bigint;
}

/** Reads of a chain's node, whatever the contract. */
export interface ChainReads
  extends Pick<L1Reader, "opensBlobs" | "blockNumber" | "finalizedBlockNumber" | "block">,
    Pick<L1Reader, "verifySignature">,
    Pick<IssuerReader, "walletTakes">,
    Pick<L1Committer, "transactionGas"> {
  /**
   * The contract that a transaction created; null while no block has it. Rejects for one that
   * created nothing, or failed.
   */
  creation(txHash: Hash): Promise<ContractCreation | null>;
  gasUsed(txHash: Hash): Promise<bigint>;
}

export function chainReads(connection: L1Connection): ChainReads {
  const { client, finality } = connection;
  const blockNumber = () => newestBlock(connection);

  return {
    blockNumber,

    async opensBlobs() {
      const { data = "0x" } = await askL1("asking for the precompile 0x0a", () =>
        actions
          .call(client, { to: POINT_EVALUATION, data: ZERO_OPENING })
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
    },

    async creation(txHash) {
      const doing = `reading transaction ${txHash}`;
      const receipt = await askL1(doing, () => minedReceipt(connection, txHash));
      if (receipt === null) return null;
      const { status, contractAddress, blockNumber } = receipt;
      if (status !== "success" || !contractAddress)
        throw invalid(`Transaction ${txHash} created no contract, or failed.`);
      const { input } = await askL1(doing, () => actions.getTransaction(client, { hash: txHash }));
      return { contract: contractAddress.toLowerCase() as Address, input, blockNumber };
    },

    async gasUsed(txHash) {
      const ask = () => actions.getTransactionReceipt(client, { hash: txHash });
      const receipt = await askL1(`reading transaction ${txHash}`, ask);
      return receipt.gasUsed;
    },

    transactionGas: () =>
      askL1("asking for the gas of a block", async () => {
        const { gasLimit } = await actions.getBlock(client);
        return gasLimit < TRANSACTION_GAS ? gasLimit : TRANSACTION_GAS;
      }),

    async finalizedBlockNumber() {
      if (finality === "finalized") {
        const ask = () => actions.getBlock(client, { blockTag: finality });
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
      const newest = await blockNumber();
      return newest > finality.confirmations ? newest - finality.confirmations : 0n;
    },

    async block(at) {
      return askL1(`reading block ${at}`, async () => {
        try {
          const where = at === "latest" ? { blockTag: at } : { blockNumber: at };
          const { number, hash, timestamp, parentBeaconBlockRoot } = await actions.getBlock(
            client,
            where,
          );
          if (number === null || hash === null)
            throw new MintmarkError("l1_failed", `the node returned a pending block for ${at}`);
          return {
            number,
            hash,
            timestamp,
            ...(parentBeaconBlockRoot && { parentBeaconBlockRoot }),
          };
        } catch (error) {
          if (error instanceof viem.BlockNotFoundError) return null;
          throw error;
        }
      });
    },

    walletTakes: (...signed) => walletTakes(connection, CONSENT_GAS, ...signed),
    verifySignature: (...signed) => walletTakes(connection, SIGNATURE_GAS, ...signed),
  };
}

export function newestBlock({ client }: L1Connection): Promise<bigint> {
  return askL1("asking for the newest block", () => actions.getBlockNumber(client));
}

/** The receipt of a transaction; null while it is not mined. */
export function minedReceipt(
  { client }: L1Connection,
  hash: Hash,
): Promise<TransactionReceipt | null> {
  return actions.getTransactionReceipt(client, { hash }).catch(nullIfMissing);
}

export function nullIfMissing(error: unknown): null {
  if (
    error instanceof viem.TransactionNotFoundError ||
    error instanceof viem.TransactionReceiptNotFoundError
  )
    return null;
  throw error;
}

function walletTakes(
  { client }: L1Connection,
  most: bigint,
  wallet: Address,
  digest: Hash,
  signature: Hex,
): Promise<boolean> {
  const gas = most + CALL_GAS + BigInt(viem.size(signature)) * GAS_PER_BYTE;
  const ask = {
    abi: WALLET_ABI,
    address: wallet,
    functionName: "isValidSignature",
    gas,
  } as const;
  return askL1(`asking ${wallet} about a signature`, async () => {
    const answer = await orIfSilent(
      actions.readContract(client, { ...ask, args: [digest, signature] }),
      null,
    );
    return answer === SIGNATURE_TAKEN;
  });
}
