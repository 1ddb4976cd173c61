import { z } from "zod";
import { STATUSES } from "../../core/index.ts";
import { type FieldForm, MINT_FORM, USER_FORM } from "../../core/internal.ts";
import * as s from "./common.ts";
import { metadataJson } from "./metadata.ts";
import { vault } from "./vaults.ts";

/** The schema of a field, from the form by which the core reads it. */
function schemaOf({ text, least, kind, fault, about }: FieldForm): z.ZodType {
  const texts = text === undefined ? [] : [z.string().regex(text, said(fault))];
  const numbers = least === undefined ? [] : [z.int().min(least)];
  const schema = kind === undefined ? oneOf([...numbers, ...texts], said(fault)) : KINDS[kind];
  return about === undefined ? schema.optional() : schema.optional().meta({ description: about });
}

const KINDS: Readonly<Record<NonNullable<FieldForm["kind"]>, z.ZodType>> = {
  uuid: z.guid(),
  reference: s.reference,
  metadata: metadataJson,
  mode: s.mode,
};

function oneOf(schemas: readonly z.ZodType[], fault: string): z.ZodType {
  const [only] = schemas;
  return only !== undefined && schemas.length === 1 ? only : z.union(schemas, fault);
}

/** A fault as a sentence. */
function said(fault: string): string {
  return `${fault.charAt(0).toUpperCase()}${fault.slice(1)}.`;
}

function schemasOf<F extends Readonly<Record<string, FieldForm>>>(form: F): { readonly [K in keyof F]: z.ZodType } {
  const schemas = Object.entries(form).map(([name, field]) => [name, schemaOf(field)] as const);
  return Object.fromEntries(schemas) as { [K in keyof F]: z.ZodType };
}

/** An entry of a mint. */
export const mintEntry = s.requestComponent("MintEntry", { ...schemasOf(MINT_FORM), assetId: z.guid() });

/** The fields of a user, besides its entries. */
export const mintUser = schemasOf(USER_FORM);

/** The body of a mint, for the documentation. The core itself reads it, and reports every bad entry at once. */
export const mintBody = s.requestComponent("MintRequest", {
  users: z.array(z.strictObject({ ...mintUser, mints: z.array(mintEntry).min(1) })).min(1),
});

export const mintQuery = z.strictObject({
  dryRun: s.flag.optional().describe("`true` checks everything and mints nothing."),
});

export const mintTransaction = s.responseComponent("MintTransaction", {
  transactionId: z.string(),
  userIndex: z.int().min(0).describe("Position in the request's `users`."),
  mintIndex: z.int().min(0).describe("Position in that user's `mints`, where an entry of `quantity` n counts as n."),
  vaultId: s.outDecimal,
  status: z.enum(STATUSES),
});

export const receipt = s.responseComponent("MintReceipt", {
  root: s.outHash.describe("Root of the tree of the vaults' leaves, in their order here."),
  count: z.int().describe("The number of these vaults."),
  time: z.int().describe("Time of the acknowledgement in milliseconds since 1970, as signed."),
  signer: s.outAddress,
  signature: z.string().describe("EIP-712 `MintReceipt(bytes32 root,uint32 count,uint64 time)`."),
  chainIds: z.record(z.string(), s.outDecimal).describe("The chain of each asset's token."),
});

export const mintReply = s.responseComponent("MintReply", {
  mintId: s.outUuid,
  vaults: z.array(vault).describe("Every vault that the request touched, once, with its state after it."),
  transactions: z.array(mintTransaction).describe("One per entry, in request order."),
  receipt: receipt
    .nullable()
    .describe(
      "The operator's signed receipt for the vaults as of this mint, whatever later mints add; null without a receipt key.",
    ),
});

export const dryRunReply = s.responseComponent("DryRunReply", {
  dryRun: z.literal(true),
  users: z.int().describe("Users in the request."),
  mints: z.int().describe("Entries that would have been minted."),
});
