import { getTypesForEIP712Domain, stringify } from "viem";
import { z } from "zod";
import type { PortalIdentity, PreparedTransfers, PreparedWithdrawals } from "../../core/index.ts";
import {
  transfersTypedData,
  withdrawalListTypedData,
  withdrawalTypedData,
} from "../../core/protocol/index.ts";
import { outAddress } from "./api/fields.ts";

/**
 * A preparation as plain JSON: typed data that every wallet takes for `eth_signTypedData_v4`, with
 * the domain's type and with decimal strings, and the request to send afterwards.
 *
 * @param paths - the routes that take a single withdrawal, if there is one, and a list
 */
export function preparationToWire(
  { owner, portal, vaults, recipient, deadline, isAlone, refused }: PreparedWithdrawals,
  paths: { readonly one: string | null; readonly list: string },
  nextCursor: string | null = null,
) {
  const [first] = vaults;
  const isSingle = (isAlone || paths.one !== null) && vaults.length === 1 && first !== undefined;
  const typed = isSingle
    ? withdrawalTypedData(portal, { ...first, recipient, deadline })
    : withdrawalListTypedData(portal, { vaults, recipient, deadline });
  const typedData = typedDataToWire(typed);
  const { message } = typedData;
  const { withdrawnBefore, ...single } = message;
  const { vaultId, quantity, ...rest } = single;
  const list = isSingle ? { vaults: [{ vaultId, withdrawnBefore, quantity }], ...rest } : message;
  return {
    ownerAddress: owner,
    typedData,
    submit:
      isSingle && paths.one !== null
        ? { path: paths.one, body: single }
        : { path: paths.list, body: list },
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
  readonly domain: ReturnType<typeof withdrawalTypedData>["domain"];
  readonly types: Readonly<
    Record<string, readonly { readonly name: string; readonly type: string }[]>
  >;
  readonly primaryType: T;
  readonly message: unknown;
}) {
  const domain = { ...typed.domain, chainId: Number(typed.domain.chainId) };
  return {
    domain,
    types: { EIP712Domain: getTypesForEIP712Domain({ domain }), ...typed.types },
    primaryType: typed.primaryType,
    message: JSON.parse(stringify(typed.message)) as Record<string, unknown>,
  };
}

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
