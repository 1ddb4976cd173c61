import { extractEip712DomainTypes } from "ox/TypedData";
import { z } from "zod";
import type { PortalIdentity, PreparedTransfers, PreparedWithdrawals } from "../../core/index.ts";
import { transfersTypedData, withdrawalListTypedData } from "../../core/protocol/index.ts";
import { outAddress } from "./api/fields.ts";

/**
 * A preparation as plain JSON: typed data that every wallet takes for `eth_signTypedData_v4`, with
 * the domain's type and with decimal strings, and the request to send afterwards.
 *
 * @param path - the route that takes the signed list
 */
export function preparationToWire(
  { owner, portal, vaults, recipient, deadline, refused }: PreparedWithdrawals,
  path: string,
  nextCursor: string | null = null,
) {
  const typedData = typedDataToWire(
    withdrawalListTypedData(portal, { vaults, recipient, deadline }),
  );
  return {
    ownerAddress: owner,
    typedData,
    submit: { path, body: typedData.message },
    refused: refused.map(({ vaultId, error: { code, message: detail } }) => ({
      vaultId,
      error: { code, detail },
    })),
    nextCursor,
  };
}

export function transferPreparationToWire(
  settlement: PortalIdentity,
  { owner, transfers, deadline, digest }: PreparedTransfers,
  path: string,
) {
  const typedData = typedDataToWire(transfersTypedData(settlement, { transfers, deadline }));
  return { ownerAddress: owner, digest, typedData, submit: { path, body: typedData.message } };
}

/** Typed data as plain JSON, with the domain's type and decimal strings. */
export function typedDataToWire<T extends string>(typed: {
  readonly domain: ReturnType<typeof withdrawalListTypedData>["domain"];
  readonly types: Readonly<
    Record<string, readonly { readonly name: string; readonly type: string }[]>
  >;
  readonly primaryType: T;
  readonly message: unknown;
}) {
  const domain = { ...typed.domain, chainId: Number(typed.domain.chainId) };
  return {
    domain,
    types: { EIP712Domain: extractEip712DomainTypes(domain), ...typed.types },
    primaryType: typed.primaryType,
    message: JSON.parse(JSON.stringify(typed.message, asText)) as Record<string, unknown>,
  };
}

const asText = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value);

/** EIP-712 typed data as wallets take them; the documentation shows the first of these types. */
export function typedDataOf<const T extends string>(
  primaryTypes: readonly [T, ...T[]],
  types: Parameters<typeof typedDataToWire>[0]["types"],
  message: unknown,
) {
  const domain = {
    name: "Mintmark",
    version: "1",
    chainId: 1n,
    verifyingContract: `0x${"5e".repeat(20)}`,
  } as const;
  return z
    .strictObject({
      domain: z.strictObject({
        name: z.string(),
        version: z.string(),
        chainId: z.int(),
        verifyingContract: outAddress,
      }),
      types: z.record(z.string(), z.array(z.strictObject({ name: z.string(), type: z.string() }))),
      primaryType: z.enum(primaryTypes),
      message: z.record(z.string(), z.unknown()),
    })
    .meta({
      description:
        "For `eth_signTypedData_v4` as it is. Whole numbers of the message are decimal strings.",
      examples: [typedDataToWire({ domain, types, primaryType: primaryTypes[0], message })],
    });
}

export function submissionOf(example: { readonly path: string; readonly body: unknown }) {
  return z.strictObject({ path: z.string(), body: z.record(z.string(), z.unknown()) }).meta({
    description: "Add `signature` to `body`, and POST it to `path`.",
    examples: [example],
  });
}
