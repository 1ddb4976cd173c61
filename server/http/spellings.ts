import type { z } from "zod";

// Parameters of the original's public client (StarkExpress), whose names differ from ours:
// docs/guides/starkexpress.md.

/** Other names of parameters, in camel case. */
const NAMES: Readonly<Record<string, string>> = {
  pageSize: "limit",
  transactionStatus: "status",
  operation: "type",
  txType: "type",
  assetSymbol: "symbol",
  address: "ownerAddress",
  username: "reference",
};

/** Other values of parameters, by our name. */
const VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  status: {
    Created: "accepted",
    Streamed: "accepted",
    Pending: "submitted",
    Confirmed: "finalized",
    Reverted: "failed",
    Failed: "failed",
  },
  type: {
    Mint: "mint",
    Withdrawal: "withdrawal",
    FullWithdrawal: "withdrawal",
    Transfer: "transfer",
  },
};

/** Advice for a parameter that nothing here means. */
const INSTEAD: Readonly<Record<string, string>> = {
  pageNumber: "Pages go by cursor: give `pagination.nextCursor` of the page before as `cursor`.",
  assetSymbol: "Give `assetId`: GET /api/v1/assets?symbol=… finds it.",
  creationDate: "Give `createdAfter` and `createdBefore`, where a list has them.",
  sortBy: "Lists are in the order of their creation: give `order`, where a list has it.",
};
const COMPARISON = "Filters compare by equality; times have `createdAfter` and `createdBefore`.";

/**
 * A query in our spelling. What has no other spelling here stays, and so does a second name of one
 * parameter, which the schema then refuses.
 */
export function inOurSpelling(schema: z.ZodType, query: unknown): unknown {
  const known = (schema as { shape?: Readonly<Record<string, unknown>> }).shape ?? {};
  const given = (query ?? {}) as Readonly<Record<string, unknown>>;
  // The first page needs no cursor.
  const isFirst = (name: string, value: unknown) =>
    camelCase(name) === "pageNumber" && value === "1" && Object.hasOwn(known, "cursor");
  const taken = new Set(Object.keys(given));
  const asked = Object.entries(given).filter((each) => !isFirst(...each));
  const spelt = asked.map(([name, value]) => {
    const ours = Object.hasOwn(known, name) ? name : ourName(name, known);
    const at = taken.has(ours) ? name : ours;
    taken.add(at);
    const values = Object.hasOwn(VALUES, at) ? VALUES[at] : undefined;
    return [
      at,
      values && typeof value === "string" && Object.hasOwn(values, value) ? values[value] : value,
    ];
  });
  return Object.fromEntries(spelt);
}

function ourName(name: string, known: Readonly<Record<string, unknown>>): string {
  const camel = camelCase(name);
  const ours = Object.hasOwn(NAMES, camel) ? (NAMES[camel] ?? camel) : camel;
  return Object.hasOwn(known, ours) ? ours : name;
}

/** The advice for an unknown parameter; none for most. */
export function adviceFor(name: string): string {
  const camel = camelCase(name);
  if (camel.endsWith("Comparison")) return ` ${COMPARISON}`;
  return Object.hasOwn(INSTEAD, camel) ? ` ${INSTEAD[camel]}` : "";
}

function camelCase(name: string): string {
  const plain = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return plain.charAt(0).toLowerCase() + plain.slice(1);
}
