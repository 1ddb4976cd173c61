import { z } from "zod";
import { MAX_LISTED_VAULTS } from "../../core/protocol/index.ts";
import {
  address,
  amount,
  createdBetween,
  hexUpTo,
  outAddress,
  outDecimal,
  outHash,
  outTime,
  outUuid,
  page,
  pageOf,
  requestComponent,
  responseComponent,
  seconds,
  uuid,
  vaultId,
} from "./common.ts";

/** A wallet contract's signature can be long; an ECDSA one has 65 bytes. */
const MAX_SIGNATURE_BYTES = 4096;

export const withdrawalBody = requestComponent(
  "NewWithdrawal",
  z.strictObject({
    vaultId,
    quantity: amount.meta({ description: "Quantized units, as a decimal string." }),
    recipient: address.optional().meta({ description: "Default: the owner." }),
    deadline: seconds.meta({ description: "Seconds since 1970, as signed, as a decimal string." }),
    signature: hexUpTo(MAX_SIGNATURE_BYTES).meta({
      description:
        "The owner's EIP-712 `Withdrawal(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity,address recipient,uint64 deadline)`, `withdrawnBefore` being the vault's `withdrawnBalance`. The domain has name Mintmark, version 1, and the chain and contract that pay the token: its own chain, and there the settlement contract or its mirror.",
    }),
  }),
);

export const withdrawalListBody = requestComponent(
  "NewWithdrawalList",
  z.strictObject({
    vaults: z
      .array(
        z.strictObject({
          vaultId,
          quantity: amount.meta({ description: "Quantized units, as a decimal string." }),
          withdrawnBefore: amount.prefault("0").meta({ description: "The vault's `withdrawnBalance`. Default: 0." }),
        }),
      )
      .min(1, "Give at least one vault.")
      .max(MAX_LISTED_VAULTS, `Give at most ${MAX_LISTED_VAULTS} vaults.`)
      .meta({ description: "In the order that was signed. All have one owner, and their tokens live on one chain." }),
    recipient: address.optional().meta({ description: "Default: the owner." }),
    deadline: seconds.meta({ description: "Seconds since 1970, as signed, as a decimal string." }),
    signature: hexUpTo(MAX_SIGNATURE_BYTES).meta({
      description:
        "The owner's EIP-712 `WithdrawalList(ListedVault[] vaults,address recipient,uint64 deadline)ListedVault(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity)`, with the domain of a single withdrawal.",
    }),
  }),
);

const WITHDRAWAL_STATUSES = ["accepted", "submitted", "settled", "finalized", "failed"] as const;

export const withdrawal = responseComponent(
  "Withdrawal",
  z.strictObject({
    withdrawalId: outUuid,
    userId: outUuid,
    chainId: outDecimal.meta({
      description: "Of the vault's token; `l1TxHash` and `l1BlockNumber` are of this chain.",
    }),
    vaultId: outDecimal,
    quantity: outDecimal,
    recipient: outAddress,
    withdrawnBefore: outDecimal,
    deadline: outDecimal,
    status: z.enum(WITHDRAWAL_STATUSES),
    l1TxHash: outHash.nullable(),
    l1BlockNumber: outDecimal.nullable(),
    failure: z.string().nullable(),
    createdAt: outTime,
    updatedAt: outTime,
  }),
);

export const withdrawalListReply = responseComponent(
  "WithdrawalListReply",
  z.strictObject({
    vaults: z
      .array(
        z.strictObject({
          vaultId: outDecimal,
          withdrawal: withdrawal.nullable(),
          error: z
            .strictObject({ code: z.string(), detail: z.string() })
            .nullable()
            .meta({ description: "Why this vault was not accepted; null when it was." }),
        }),
      )
      .meta({ description: "In the order of the request." }),
  }),
);

export const withdrawalPage = responseComponent("WithdrawalPage", pageOf(withdrawal));

export const withdrawalQuery = z.strictObject({
  status: z.enum(WITHDRAWAL_STATUSES).optional(),
  userId: uuid.optional(),
  ownerAddress: address.optional().meta({ description: "Of all users of this owner." }),
  assetId: uuid.optional(),
  vaultId: vaultId.optional(),
  ...createdBetween,
  ...page,
});

export const withdrawalParams = z.strictObject({ withdrawalId: uuid });
