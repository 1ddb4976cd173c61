import { encodeFunctionData, parseAbi, size } from "viem";
import { call as callContract, getCode, simulateContract } from "viem/actions";
import { invalid, MintmarkError } from "../errors.ts";
import type { L1Enterer, L1Renewer, WithdrawalCall } from "../ports.ts";
import type { L1Settler, Trade } from "../protocol/trade.ts";
import { tipIdOf } from "../protocol/transfer-proof.ts";
import { packVaultId } from "../protocol/vault.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import { type ContractCall, type L1Account, toReceipt } from "./account.ts";
import * as calldata from "./arguments.ts";
import { askL1, orReason, reasonIn, revertData, viewsOf } from "./connection.ts";
import { madeIn } from "./logs.ts";
import type { ViemReader } from "./reader.ts";
import { settlementArguments, tradeCalldata, tradeRefusal } from "./trades.ts";

/** Most calldata of a renewal: nodes relay transactions of 128 KiB. */
const MAX_RENEWAL_BYTES = 130_000;

/** For a node that cannot try a contract's code in the place of another. */
const REFUSED_TRADE =
  "L1 refuses the trade now: a vault is not mature or no longer as signed, or a signature does not count there.";
const NO_MAKINGS =
  "This deployment makes no vaults, so it settles no trades. Deploy the contracts with the code of makings.";

/** The entries of this project's tokens, and the errors by which they refuse. */
const ENTER = parseAbi([
  "function enter(address owner, uint256 amountOrTokenId) returns (uint64 vaultId)",
  "function enter(address owner, uint256 tokenId, uint256 amount) returns (uint64 vaultId)",
  "error MinterNotLocked()",
  "error CapForbidsEntry(uint256 cap)",
  "error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)",
  "error ERC721NonexistentToken(uint256 tokenId)",
  "error ERC721IncorrectOwner(address sender, uint256 tokenId, address owner)",
  "error ERC1155InsufficientBalance(address sender, uint256 balance, uint256 needed, uint256 id)",
]);

/** Calls of which the settlement contract makes vaults by itself: entries, renewals and trades. */
export type MakingCalls = L1Enterer & L1Settler & Omit<L1Renewer, "hasMakings">;

export function makingsOf(by: L1Account, { transactionGas, hasMakings }: ViemReader): MakingCalls {
  const { client, settlement } = by;
  const view = viewsOf(by, abi);
  const contract = { abi, address: settlement.contract, account: by.account } as const;

  /**
   * Why L1 refuses a trade. `settle` tells it in an event, which a call does not return, so the
   * code of makings runs the trade in the place of the contract.
   */
  async function refusalOf(trade: Trade): Promise<string> {
    const [address, maturity] = await Promise.all([
      view("asking for the code of makings", "makingsCode", []),
      view("asking for the maturity", "maturity", []),
    ]);
    const code = await getCode(client, { address });
    try {
      await callContract(client, {
        account: by.account.address,
        to: settlement.contract,
        data: tradeCalldata(trade, maturity),
        stateOverride: [{ address: settlement.contract, code: code ?? "0x" }],
      });
      return REFUSED_TRADE;
    } catch (error) {
      const data = revertData(error);
      return data === null ? REFUSED_TRADE : tradeRefusal(reasonIn(abi, data));
    }
  }

  return {
    async checkRenewal(calls) {
      const call = renewalCall(calls);
      const gas = await transactionGas();
      return askL1(call.functionName, () =>
        orReason(simulateContract(client, { ...contract, ...call, gas }).then(() => null)),
      );
    },

    async renew(calls, options) {
      const receipt = await by.mined(renewalCall(calls), options);
      const { transactionHash: txHash } = receipt;
      if (receipt.status === "reverted")
        throw new MintmarkError("l1_failed", `renew: transaction ${txHash} reverted`);
      const { making, vaults } = madeIn(settlement.contract, receipt);
      const batchNumber = Number(making);
      return {
        ...toReceipt(receipt),
        vaults: vaults.map((vault, slot) => ({
          ...vault,
          vaultId: packVaultId({ mode: "made", batchNumber, slot }),
        })),
      };
    },

    checkTrade(trade) {
      const { maker, taker } = trade;
      const vaults = `vaults ${tipIdOf(maker)} and ${tipIdOf(taker)}`;
      return askL1(`trying the trade of ${vaults}`, async () => {
        if (!(await hasMakings())) return NO_MAKINGS;
        const { result } = await simulateContract(client, {
          ...contract,
          functionName: "settle",
          args: settlementArguments([trade]),
        });
        return result[1] === 0n ? null : refusalOf(trade);
      });
    },

    async settle(trades, options) {
      const args = settlementArguments(trades);
      const ids = trades.map(({ maker }) => tipIdOf(maker));
      const sent = await by.sendMany(
        { abi, functionName: "settle", args },
        "TradeFailed",
        ids,
        options,
      );
      const refusals = sent.refusals?.map((reason) => reason && tradeRefusal(reason)) ?? null;
      return { ...sent, refusals };
    },

    async enter({ token: address, standard, owner, tokenId, amount }, options) {
      const id = tokenId === null ? [] : [tokenId];
      const args = [owner, ...id, ...(standard === "erc721" ? [] : [amount])];
      return by.send(
        { address, abi: [...ENTER, ...abi], functionName: "enter", args } as ContractCall,
        options,
      );
    },
  };
}

/** Throws `validation_failed` when the vaults do not fit into one transaction. */
function renewalCall(calls: readonly WithdrawalCall[]) {
  const call = { abi, functionName: "renew", args: calldata.renewalArguments(calls) } as const;
  const bytes = size(encodeFunctionData(call));
  if (bytes <= MAX_RENEWAL_BYTES) return call;
  const detail = `The proofs of ${calls.length} vaults have ${bytes} bytes, and a renewal at most ${MAX_RENEWAL_BYTES}. Renew fewer at once.`;
  throw invalid(detail);
}
