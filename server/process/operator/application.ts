import { z } from "zod";
import { MintmarkError } from "../../../core/index.ts";
import { quantizedAmount } from "../../../core/internal.ts";
import { PATH, pageOf, standard, uuid, vaultId } from "../../routes/api/fields.ts";
import { mintBody } from "../../routes/mint.ts";
import { mintToWire } from "../../routes/mint-answer.ts";
import { transaction, transactionQuery } from "../../routes/transactions.ts";
import { vault, vaultProof, vaultQuery } from "../../routes/vaults.ts";
import * as withdrawals from "../../routes/withdrawals.ts";
import { operation } from "./operation.ts";
import { APPLICATION, ofApplication } from "./tenants.ts";

const USER = "--user 6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a10";
const ASSET = "--asset 0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a21";
const WITHDRAWAL = "01a1fd1b-bfbe-7246-add7-f4566c613096";

/** A key's scopes and quota apply, and mints and withdrawals are recorded for it. */
const byKey = z.strictObject({
  apiKey: z.string().meta({ description: "the application's API key", secret: "MINTMARK_API_KEY" }),
});
const user = mintBody.shape.users.element.shape;
// A person types whole tokens; `--units` counts as the API does.
const { amount: units, amountDecimal: amount, ...entry } = user.mints.element.shape;
const { vaults: _, ...signed } = withdrawals.withdrawalBody.shape;
const listed = withdrawals.listedVault.shape;

/** Operations of an application over its HTTP API, for a team's own terminal. */
export const APPLICATION_OPERATIONS = {
  mint: operation({
    examples: [
      `${USER} ${ASSET} --token 1001`,
      `--owner 0x70997970… ${ASSET} --amount 12.5 --dry-run`,
    ],
    input: byKey.extend({
      userId: user.userId,
      ownerAddress: user.ownerAddress,
      ...entry,
      assetId: entry.assetId.describe("the asset's id, which `mintmark assets list` shows"),
      amount: amount.describe("whole tokens, such as 12.5"),
      units: units.describe("in the place of --amount: units, as the API counts them"),
      dryRun: z.boolean().default(false).describe("check everything and mint nothing"),
      idempotencyKey: z.string().optional().describe("the same key again answers the same mint"),
    }),
    columns: ["vaultId", "status", "ownerAddress", "tokenId", "amount", "transactionId"],
    async run(
      engine,
      { apiKey, userId, ownerAddress, dryRun, idempotencyKey, amount, units, ...rest },
    ) {
      const principal = await engine.keys.authenticate(apiKey);
      const mint = {
        ...rest,
        ...(units !== undefined && { amount: units }),
        ...(amount !== undefined && { amountDecimal: amount }),
      };
      const request: unknown = { users: [{ userId, ownerAddress, mints: [mint] }] };
      if (dryRun) return { dryRun, ...(await engine.mints.check(principal, request)) };
      return mintToWire(
        await engine.mint(principal, request, { ...(idempotencyKey && { idempotencyKey }) }),
      );
    },
  }),
  "vaults.list": operation({
    summary: "list an application's vaults, oldest first; all their fields with --json",
    examples: [APPLICATION, `${APPLICATION} ${ASSET} --token 1001`],
    input: ofApplication.extend(vaultQuery.shape),
    columns: [
      "vaultId",
      "status",
      "ownerAddress",
      "assetId",
      "tokenId",
      "amount",
      "availableBalance",
      "batchId",
    ],
    answer: pageOf(vault),
    run: async (engine, { applicationId, ...filter }) => engine.vaults.list(applicationId, filter),
  }),
  "vaults.show": operation({
    summary: "show one vault",
    examples: [`9223372036854775808 ${APPLICATION}`],
    input: ofApplication.extend({ vaultId }),
    args: ["vaultId"],
    answer: vault,
    run: (engine, { applicationId, vaultId }) => engine.vaults.get(applicationId, vaultId),
  }),
  "vaults.proof": operation({
    summary: "show a vault's path to its batch root",
    examples: ["9223372036854775808 --json"],
    input: z.strictObject({ vaultId }),
    args: ["vaultId"],
    answer: vaultProof,
    run: (engine, { vaultId }) => engine.proofs.vault(vaultId),
  }),
  "transactions.list": operation({
    summary:
      "list an application's mints, withdrawals and transfers, newest first; all their fields with --json",
    examples: [APPLICATION, `${APPLICATION} --type mint --status settled`],
    input: ofApplication.extend(transactionQuery.shape),
    columns: [
      "transactionId",
      "type",
      "status",
      "assetId",
      "tokenId",
      "amount",
      "vaultId",
      "l1TxHash",
      "failure",
    ],
    answer: pageOf(transaction),
    run: async (engine, { applicationId, ...filter }) =>
      engine.transactions.list(applicationId, filter),
  }),
  "transactions.show": operation({
    summary: "show one transaction, with the time of each status",
    examples: [`01a1fd1b-bfbe-7246-add7-f4566c613096.0 ${APPLICATION}`],
    input: ofApplication.extend({ transactionId: PATH.transactionId }),
    args: ["transactionId"],
    answer: transaction,
    run: (engine, { applicationId, transactionId }) =>
      engine.transactions.get(applicationId, transactionId),
  }),
  withdraw: operation({
    examples: ["9223372036854775808 --amount 12.5 --deadline 1893456000 --signature 0x…"],
    input: byKey.extend({
      vaultId: listed.vaultId,
      ...signed,
      amount: amount.describe("whole tokens, such as 12.5, as signed"),
      units: listed.quantity
        .optional()
        .describe("in the place of --amount: units, as the API counts them"),
      withdrawnBefore: listed.withdrawnBefore
        .unwrap()
        .optional()
        .describe("units withdrawn before, as signed; default: those of the vault"),
    }),
    args: ["vaultId"],
    answer: withdrawals.withdrawal,
    async run(engine, { apiKey, amount, units, vaultId, withdrawnBefore, ...signed }) {
      const principal = await engine.keys.authenticate(apiKey);
      if ((amount === undefined) === (units === undefined))
        throw new MintmarkError(
          "validation_failed",
          "Give --amount or --units, as the owner has signed it.",
        );
      const vault = await engine.vaults.get(principal.applicationId, vaultId);
      const listed = {
        vaultId,
        withdrawnBefore: withdrawnBefore ?? vault.withdrawnBalance,
        quantity: units ?? quantizedAmount(`${amount}`, vault),
      };
      const [accepted] = await engine.withdrawals.request(principal, {
        ...signed,
        vaults: [listed],
      });
      if (!accepted?.withdrawal) throw accepted?.error;
      return accepted.withdrawal;
    },
  }),
  "withdrawals.list": operation({
    summary: "list an application's withdrawals, newest first; all their fields with --json",
    examples: [APPLICATION, `${APPLICATION} --status accepted`],
    input: ofApplication.extend(withdrawals.withdrawalQuery.shape),
    columns: ["withdrawalId", "status", "userId", "vaultId", "quantity", "l1TxHash", "failure"],
    answer: pageOf(withdrawals.withdrawal),
    run: async (engine, { applicationId, ...filter }) =>
      engine.withdrawals.list(applicationId, filter),
  }),
  "withdrawals.show": operation({
    summary: "show one withdrawal, with the reason for waiting",
    examples: [`${WITHDRAWAL} ${APPLICATION}`],
    input: ofApplication.extend({ withdrawalId: uuid }),
    args: ["withdrawalId"],
    answer: withdrawals.withdrawal,
    run: (engine, { applicationId, withdrawalId }) =>
      engine.withdrawals.get(applicationId, withdrawalId),
  }),
  "withdrawals.pending": operation({
    summary: "list what the next commit may send, of every application; all fields with --json",
    examples: [""],
    input: z.strictObject({}),
    columns: ["withdrawalId", "standard", "vaultId", "quantity", "recipient", "deadline", "status"],
    answer: z.array(withdrawals.withdrawal.extend({ standard })),
    async run({ operator }) {
      const chains = operator
        .portals()
        .map(({ chainId }) => Array.fromAsync(operator.pendingWithdrawals(chainId)));
      return (await Promise.all(chains))
        .flat()
        .map(({ withdrawal, standard }) => ({ ...withdrawal, standard }));
    },
  }),
};
