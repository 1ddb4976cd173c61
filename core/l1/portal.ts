import { size } from "viem";
import { readContract, simulateContract } from "viem/actions";
import {
  GAS_AROUND_ITEM,
  GAS_AROUND_ITEMS,
  GAS_PER_BYTE,
  ITEM_GAS,
  TRANSFER_GAS,
  TRIAL_GAS,
  WAY_GAS,
} from "../gas.ts";
import type { Hex } from "../model.ts";
import type {
  L1Committer,
  L1Owner,
  L1Voider,
  WithdrawalAuthorization,
  WithdrawalCall,
} from "../ports.ts";
import { isTransferred, sharesOf, tipIdOf, tipOwnerOf } from "../protocol/transfer-proof.ts";
import { cancellationId } from "../protocol/typed-data.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import type { ContractCall, L1Account } from "./account.ts";
import * as calldata from "./arguments.ts";
import { askL1, orReason } from "./connection.ts";
import type { ViemReader } from "./reader.ts";

/**
 * Most shares of one transaction, {@link sharesOf} and one for each signed list, so that its
 * calldata stays below the 128 KiB that nodes relay.
 */
const MAX_SHARES = 21;
/**
 * Calldata of a withdrawal with its group, of the records of a transferred vault, or of half of a
 * withdrawal and its list of 256 vaults.
 */
const MAX_SHARE_BYTES = 6_100;

/** The functions of settlement contract and mirror that pay withdrawals, and void duplicates. */
export interface PayingPortal
  extends L1Owner,
    L1Voider,
    Pick<L1Committer, "checkWithdrawal" | "mostWithdrawals" | "withdraw"> {}

export function portalOf(by: L1Account, { transactionGas, withdrawn }: ViemReader): PayingPortal {
  const { client, settlement } = by;
  const contract = { abi, address: settlement.contract, account: by.account } as const;

  /** The contract's answer to `withdraw`, which gives a reason where `withdrawBatch` gives none. */
  async function refusalOf(call: WithdrawalCall, gas?: bigint): Promise<string | null> {
    const { authorization } = call;
    const limit = gas !== undefined && { gas };
    if (authorization !== null) {
      const refusal = await orReason(listRefusal(call, authorization, limit));
      if (refusal !== null) return refusal;
    }
    // viem's types cannot follow a union of functions. A list decides, so the owner may be the
    // caller here.
    const trial = {
      ...contract,
      ...(authorization !== null && { account: tipOwnerOf(call) }),
      ...calldata.withdrawalCall(call),
      ...limit,
    } as never;
    return orReason(simulateContract(client, trial).then(() => null));
  }

  /**
   * Why the list refuses the vault, whatever the vault is; null when it does not. Rejects when the
   * contract reverts.
   */
  async function listRefusal(
    call: WithdrawalCall,
    authorization: WithdrawalAuthorization,
    limit: false | { readonly gas: bigint },
  ): Promise<string | null> {
    const read = { abi, address: settlement.contract, ...limit } as const;
    await readContract(client, {
      ...read,
      functionName: "checkList",
      args: [calldata.packedList(call, authorization)],
    });
    const vaultId = tipIdOf(call);
    const id = cancellationId(vaultId);
    const cancelled = [tipOwnerOf(call), id] as const;
    if (await readContract(client, { ...read, functionName: "isCancelled", args: cancelled }))
      return `AuthorizationIsCancelled(${id})`;
    const listed = authorization.list.find((each) => each.vaultId === vaultId);
    // L1 keeps no amount of an ERC-721 vault, before which nothing was withdrawn.
    return (await withdrawn(vaultId, "erc1155")) === listed?.withdrawnBefore
      ? null
      : `NotListed(${vaultId})`;
  }

  return {
    /**
     * Tries the very call that `withdraw` makes, because a token's behaviour can depend on its gas.
     */
    checkWithdrawal: (call) =>
      askL1(`trying the withdrawal of vault ${tipIdOf(call)}`, async () => {
        const { result } = await simulateContract(client, {
          ...contract,
          functionName: "withdrawBatch",
          args: calldata.withdrawalBatchArguments([call], ITEM_GAS),
          gas: trialGas(call),
        });
        if (result === 0n) return null;
        const tooMuch = "it needs more gas than an item of a batch has; its owner can withdraw it";
        return (await refusalOf(call, trialGas(call))) ?? tooMuch;
      }),

    checkOwnWithdrawal: (call) =>
      askL1(`trying the withdrawal of vault ${tipIdOf(call)}`, () => refusalOf(call)),

    async mostWithdrawals() {
      const left = (await transactionGas()) - relayGas(0, 0);
      const most = Number(left / (relayGas(1, MAX_SHARE_BYTES) - relayGas(0, 0)));
      return Math.max(2, Math.min(most, MAX_SHARES));
    },

    async withdraw(calls, options) {
      const args = calldata.withdrawalBatchArguments(calls, ITEM_GAS);
      const shares = calls.reduce((sum, call) => sum + sharesOf(call), args[1].length);
      if (calls.length < 1 || shares > MAX_SHARES)
        throw new RangeError(`1 to ${MAX_SHARES} shares a transaction, not ${shares}`);
      const call = { abi, functionName: "withdrawBatch", args } as const;
      const gas = (data: Hex) => relayGas(shares, size(data));
      const prepare = async () => by.withGas(call, gas);
      return by.sendMany(call, "WithdrawalFailed", calls.map(tipIdOf), options, prepare);
    },

    async withdrawOwn(call, options) {
      return by.send(calldata.withdrawalCall(call) as ContractCall, options);
    },

    async voidDuplicate(earlier, later, options) {
      const args = [
        ...calldata.provenVaultArguments(earlier),
        ...calldata.provenVaultArguments(later),
      ] as const;
      return by.transact("voidDuplicate", args, options);
    },
  };
}

/**
 * The most gas of a relay. It is not estimated: a token or a wallet can turn expensive before the
 * transaction is mined, and the contract reverts as a whole when an item has less than its gas
 * left. Some tokens could also take so long together that a node gives up.
 */
function relayGas(shares: number, bytes: number): bigint {
  return (
    TRANSFER_GAS +
    BigInt(bytes) * GAS_PER_BYTE +
    BigInt(shares) * (ITEM_GAS + GAS_AROUND_ITEM) +
    GAS_AROUND_ITEMS
  );
}

/** Gas to try a withdrawal: the check of its list and its records take gas of their own. */
function trialGas(call: WithdrawalCall): bigint {
  const list = call.authorization === null ? 0n : ITEM_GAS + GAS_AROUND_ITEM;
  return TRIAL_GAS + list + (isTransferred(call) ? WAY_GAS : 0n);
}
