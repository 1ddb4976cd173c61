import { zeroAddress } from "viem";
import type { z } from "zod";
import { MintmarkError } from "../../core/index.ts";
import { transfersDigest } from "../../core/protocol/index.ts";
import { transferPreparationToWire } from "../http/wire/typed-data.ts";
import * as s from "../schemas/transfers.ts";
import { type Endpoint, endpoint, entriesOf, json } from "./api/endpoint.ts";

/** What refuses a list of transfers before anyone has signed it. */
const PREPARATION_ERRORS = [
  "history_diverged",
  "l1_not_compared",
  "vault_not_found",
  "vault_void",
  "vault_spent",
  "asset_not_transferable",
  "proof_not_ready",
  "withdrawal_pending",
  "insufficient_balance",
  "transfer_too_deep",
  "amount_out_of_range",
  "batch_too_large",
  "deadline_invalid",
] as const;

const REQUEST_ERRORS = [...PREPARATION_ERRORS, "signature_invalid"] as const;

const PREPARE = { transfers: [{ vaultId: "9223372036854775808", to: `0x${"70".repeat(20)}` }] };

const REQUEST = {
  transfers: [{ vaultId: "9223372036854775808", amount: "0", to: `0x${"70".repeat(20)}` }],
  deadline: "1893456000",
  signature: `0x${"00".repeat(65)}`,
};

export const transferEndpoints: readonly Endpoint[] = [
  endpoint("Transfers", "transfer", "POST /api/v1/transfers/prepare", "prepareTransfers", {
    summary: "What an owner signs to give vaults or parts of them away, or to redeem them",
    description:
      "Answers EIP-712 typed data for `eth_signTypedData_v4`, and the request to send with the signature. Changes nothing. One vault that cannot be transferred refuses all.",
    body: s.transferPreparationBody,
    cost: entriesOf("transfers"),
    example: PREPARE,
    success: json(200, "What to sign.", s.transferPreparation),
    errors: PREPARATION_ERRORS,
    async handle({ engine, principal, body }) {
      const prepared = await engine.transfers.prepare(principal, asSigned(body));
      return transferPreparationToWire(engine.settlement, prepared, "/api/v1/transfers");
    },
  }),
  endpoint("Transfers", "transfer", "POST /api/v1/transfers", "createTransfer", {
    summary: "Transfer or redeem up to 1,024 vaults with one signature of their owner",
    description:
      "Takes all transfers or none, and holds their vaults at once. Owner and receivers pay no gas. The same signed list always returns the same transfer; a failed one is tried anew.",
    body: s.transferBody,
    cost: entriesOf("transfers"),
    example: REQUEST,
    success: { ...json(202, "Accepted.", s.transferList), headers: { Location: "Path of the transfer." } },
    errors: REQUEST_ERRORS,
    async handle({ engine, principal, body, reply }) {
      const accepted = await engine.transfers.request(principal, body);
      reply.header("location", `/api/v1/transfers/${accepted.transferId}`);
      return accepted;
    },
  }),
  endpoint("Transfers", "read", "GET /api/v1/transfers", "listTransfers", {
    summary: "Transfers of the application, newest first",
    description:
      "A page can be shorter than `limit` even if there is a next one: it examines a bounded number of transfers. `GET /api/v1/transactions?type=transfer` lists each vault of them, with more filters.",
    query: s.transferQuery,
    success: json(200, "One page.", s.transferPage),
    inTurn: true,
    handle: ({ engine, applicationId, query }) => engine.transfers.list(applicationId, query),
  }),
  endpoint("Vaults", "read", "GET /api/v1/vaults/{vaultId}/history", "getVaultHistory", {
    summary: "The transfers that led to a vault, and what took it",
    success: json(200, "The transfers, waiting ones too.", s.history),
    errors: ["vault_not_found"],
    async handle({ engine, applicationId, params: { vaultId } }) {
      await engine.vaults.get(applicationId, vaultId);
      return await engine.transfers.history(vaultId);
    },
  }),
  endpoint("Vaults", "public", "GET /public/v1/vaults/{vaultId}/history", "getPublicVaultHistory", {
    summary: "The transfers in sealed batches that led to a vault, and that took it",
    success: json(200, "The transfers; L1 holds the data of each.", s.publicHistory),
    errors: ["vault_not_found", "vault_void"],
    async handle({ engine, params: { vaultId } }) {
      const { before, after } = await engine.transfers.history(vaultId);
      const vault = await engine.vaults.content(vaultId);
      // What waits is not public yet.
      const told = after.filter(({ status }) => status !== "accepted");
      return { before, after: told, vault: vault.amount === 0n ? null : vault };
    },
  }),
  endpoint("Transfers", "read", "GET /api/v1/transfers/{transferId}", "getTransfer", {
    summary: "One transfer, with every vault that it takes and makes",
    success: json(200, "The transfer.", s.transferList),
    errors: ["transfer_not_found"],
    handle: ({ engine, applicationId, params }) => engine.transfers.get(applicationId, params.transferId),
  }),
];

/** Transfers of a signed-in owner, whatever application the vaults are of. Their gas counts like that of withdrawals. */
export const ownerTransferEndpoints: readonly Endpoint[] = [
  endpoint("Owners", "owner", "POST /owner/v1/transfers/prepare", "prepareOwnerTransfers", {
    summary: "What the signed-in owner signs to transfer or redeem its vaults",
    description: "Like `POST /api/v1/transfers/prepare`, for the owner's vaults in any one application.",
    body: s.transferPreparationBody,
    cost: entriesOf("transfers"),
    example: PREPARE,
    success: json(200, "What to sign.", s.transferPreparation),
    errors: [...PREPARATION_ERRORS, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body }) {
      // Refuse before the owner signs for nothing.
      ownerRelay.requireFor(owner, body.transfers.length);
      const prepared = await engine.transfers.prepare({ owner }, asSigned(body));
      return transferPreparationToWire(engine.settlement, prepared, "/owner/v1/transfers");
    },
  }),
  endpoint("Owners", "owner", "POST /owner/v1/transfers", "createOwnerTransfer", {
    summary: "Transfer or redeem vaults of the signed-in owner with one signature",
    description: "Like `POST /api/v1/transfers`. The operator bears the gas for only so many vaults of an owner a day.",
    body: s.transferBody,
    cost: entriesOf("transfers"),
    example: REQUEST,
    success: json(202, "Accepted.", s.ownersTransferList),
    errors: [...REQUEST_ERRORS, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body }) {
      // A repeated list is answered as before, and costs nothing more.
      const digest = transfersDigest(engine.settlement, body);
      const known = await engine.transfers.get({ owner }, digest).catch(unlessNotFound);
      const count = known === null ? body.transfers.length : 0;
      const request = () => engine.transfers.request({ owner }, body);
      return await ownerRelay.count(owner, count, request, () => count);
    },
  }),
  endpoint("Owners", "owner", "GET /owner/v1/transfers/{transferId}", "getOwnerTransfer", {
    summary: "One transfer that the signed-in owner has signed",
    success: json(200, "As it is now.", s.ownersTransferList),
    errors: ["transfer_not_found"],
    handle: ({ engine, owner, params }) => engine.transfers.get({ owner }, params.transferId),
  }),
];

/** A preparation as it is signed: a redemption is a transfer to the zero address. */
function asSigned({ transfers, deadline }: z.output<typeof s.transferPreparationBody>) {
  return {
    transfers: transfers.map(({ vaultId, amount, to = zeroAddress }) => ({ vaultId, amount, to })),
    ...(deadline !== undefined && { deadline }),
  };
}

function unlessNotFound(error: unknown): null {
  if (error instanceof MintmarkError && error.code === "transfer_not_found") return null;
  throw error;
}
