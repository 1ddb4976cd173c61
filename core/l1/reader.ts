import { decodeFunctionData, numberToHex, zeroAddress } from "viem";
import { getTransaction, multicall } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import type { Address, Hash } from "../model.ts";
import type { L1Reader, L1Renewer, MadeEvent } from "../ports.ts";
import { hexToBytes } from "../protocol/hex.ts";
import type { TransferSession } from "../protocol/transfer-rules.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import {
  MODE_VALUE,
  provenVaultArguments,
  STANDARD_VALUE,
  transferredArguments,
} from "./arguments.ts";
import { type ChainReads, chainReads, minedReceipt, newestBlock, nullIfMissing } from "./chain.ts";
import { askL1, type L1Connection, orIfSilent, viewsOf } from "./connection.ts";
import { decodeEvents, logReader, madeIn } from "./logs.ts";
import { type RegistryReads, registryReads } from "./registry.ts";
import { type TokenReads, tokenReads } from "./tokens.ts";

/** Reads of the contract about its state, its terms, and vaults. */
interface ContractReads
  extends Pick<L1Reader, "settlement" | "state" | "rollupData" | "events" | "isOperator">,
    Pick<L1Reader, "verifyVault" | "verifyTransferred" | "withdrawn" | "maturity" | "committee">,
    Pick<L1Renewer, "hasMakings"> {
  /**
   * The session of an owner with a key, of zeros when there is none; null of a contract without
   * transfers.
   */
  session(owner: Address, key: Address): Promise<TransferSession | null>;
  /**
   * The vaults that L1 made in a transaction; null while it is not mined. Rejects with `l1_failed`
   * when it made none.
   */
  making(txHash: Hash): Promise<MadeEvent | null>;
}

/** {@link L1Reader} over a viem client, with what it can read besides. */
export type ViemReader = TokenReads & ChainReads & RegistryReads & ContractReads;

export function readsOf(connection: L1Connection): ViemReader {
  return {
    ...tokenReads(connection),
    ...chainReads(connection),
    ...registryReads(connection),
    ...contractReads(connection),
  };
}

function contractReads(connection: L1Connection): ContractReads {
  const { client, settlement } = connection;
  const logs = logReader(client, settlement.contract);
  const view = viewsOf(connection, abi);

  return {
    settlement,

    async state(at) {
      const blockNumber = at ?? (await newestBlock(connection));
      const view = { abi, address: settlement.contract } as const;
      const contracts = [
        { ...view, functionName: "batchCounts" },
        { ...view, functionName: "stateRoot", args: [MODE_VALUE.validium] },
        { ...view, functionName: "stateRoot", args: [MODE_VALUE["zk-rollup"]] },
        { ...view, functionName: "stateCommitment" },
        { ...view, functionName: "history" },
      ] as const;
      return askL1("reading the committed state", async () => {
        // One call, because nodes behind one address can differ about a block of one number.
        const [[validium, rollup], rootValidium, rootRollup, commitment, history] = await multicall(
          client,
          {
            contracts,
            blockNumber,
            deployless: true,
            batchSize: 0,
            allowFailure: false,
          },
        );
        const counts = { countValidium: Number(validium), countRollup: Number(rollup) };
        return { ...counts, rootValidium, rootRollup, commitment, history };
      });
    },

    async rollupData(txHash) {
      const transaction = await askL1(`reading transaction ${txHash}`, () =>
        getTransaction(client, { hash: txHash }).catch(nullIfMissing),
      );
      if (transaction === null) return null;
      const { input } = transaction;
      // The contract takes rollup batches from plain accounts only, so the commit is the
      // transaction's own call.
      const { functionName, args } = await askL1(`decoding transaction ${txHash}`, async () =>
        decodeFunctionData({ abi, data: input }),
      );
      if (functionName === "commitBlobBatch") return null;
      if (functionName === "commitRollupBatch") return hexToBytes(args[3]);
      if (functionName === "commitTransferBatch") return hexToBytes(args[2]);
      throw new MintmarkError(
        "l1_failed",
        `transaction ${txHash} calls ${functionName}, which commits no rollup batch`,
      );
    },

    verifyVault: (proven) =>
      view(`verifying vault ${proven.vault.vaultId}`, "verifyVault", provenVaultArguments(proven)),

    async verifyTransferred(proven) {
      const doing = `verifying the transfers of vault ${proven.vault.vaultId}`;
      const [owner, left] = await view(doing, "verifyTransferred", transferredArguments(proven));
      return { owner: owner.toLowerCase() as Address, left };
    },

    async isOperator(account) {
      const doing = `asking whether ${account} is an operator`;
      return view(doing, "hasRole", [await view(doing, "OPERATOR_ROLE", []), account]);
    },

    async session(owner, key) {
      const asked = view(`reading the session of ${owner} with ${key}`, "session", [owner, key]);
      const found = await orIfSilent(asked, null);
      if (found === null) return null;
      const [authorizedAt, until, revokedAt, limit, assetType] = found;
      return {
        authorizedAt,
        until,
        revokedAt,
        limit,
        assetType: numberToHex(assetType, { size: 32 }),
      };
    },

    async hasMakings() {
      const asked = view("asking for the code of makings", "makingsCode", []);
      // A mirror does not know the function.
      return BigInt(await orIfSilent(asked, zeroAddress)) !== 0n;
    },

    async making(txHash) {
      const doing = `looking for transaction ${txHash}`;
      const receipt = await askL1(doing, () => minedReceipt(connection, txHash));
      return receipt && madeIn(settlement.contract, receipt);
    },

    withdrawn(vaultId, standard) {
      const args = [vaultId, STANDARD_VALUE[standard]] as const;
      return view(`reading what was withdrawn of vault ${vaultId}`, "withdrawn", args);
    },

    maturity: () => view("reading the maturity time", "maturity", []),

    async committee() {
      const [committeeHash, epoch] = await view("reading the committee", "committee", []);
      return { committeeHash, epoch };
    },

    async events(fromBlock, toBlock) {
      const doing = `reading events of blocks ${fromBlock} to ${toBlock}`;
      return decodeEvents(await askL1(doing, () => logs(fromBlock, toBlock)));
    },
  };
}
