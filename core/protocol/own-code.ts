import { MintmarkError } from "../errors.ts";
import type { Address } from "../model.ts";
import { contractCode, knownContracts, type ReleasedCode } from "./contract-code.ts";
import { bytesToHex, equalBytes, hexToBytes, keccak256, wordOf } from "./hex.ts";
import { domainHash } from "./typed-data.ts";

/** A contract that pays vaults. */
export type PayingContract = "StateCommitment" | "StateMirror";

/** The runtime code of an account; `0x` or undefined for none. */
export type CodeReader = (address: Address) => Promise<unknown>;

/**
 * Checks that a contract has the code of this version or of an earlier release, which later
 * versions know for ever: a settlement contract with the contracts whose code it runs on its own
 * storage, or a mirror. Every byte counts, immutable values too. Rejects with `l1_failed`, and
 * names the first part that differs. An account that delegates to other code (EIP-7702) differs.
 *
 * It says nothing about what the constructor wrote. `mintmark check-contract` checks that too.
 *
 * @example
 * await requireOwnCode((address) => client.getCode({ address }), { chainId: 1n, contract });
 */
export async function requireOwnCode(
  codeOf: CodeReader,
  { chainId, contract }: { readonly chainId: bigint; readonly contract: Address },
  expected?: PayingContract,
): Promise<void> {
  await releaseOf(codeOf, { chainId, contract }, expected);
}

/** Checks like {@link requireOwnCode}, and resolves with the contract's name and its release. */
export async function releaseOf(
  codeOf: CodeReader,
  { chainId, contract }: { readonly chainId: bigint; readonly contract: Address },
  expected?: PayingContract,
): Promise<{ readonly release: ReleasedCode; readonly name: PayingContract }> {
  const read = async (address: Address) => hexToBytes(`${(await codeOf(address)) ?? "0x"}`);
  const code = await read(contract);
  const names = expected === undefined ? (["StateMirror", "StateCommitment"] as const) : [expected];
  const [found] = knownContracts.flatMap((release) =>
    names.flatMap((name) => {
      const immutables = immutablesOf(code, release[name]);
      return immutables === null ? [] : [{ release, name, immutables }];
    }),
  );
  if (found === undefined) {
    const likely =
      code.length === contractCode.StateMirror.bytes ? "StateMirror" : "StateCommitment";
    throw foreignCode(expected ?? likely, { chainId, contract });
  }
  const { release, name, immutables } = found;
  const value = (of: string) => immutables.get(of) ?? new Uint8Array(WORD);
  // A fork of the chain has another id. There the contract computes its domain anew.
  const isFork = !equalBytes(value("_domainChainId"), hexToBytes(wordOf(chainId)));
  const domain = domainHash({ chainId, contract });
  const isAtMost = (most: bigint) => (of: string) => BigInt(bytesToHex(value(of))) <= most;
  const isBound =
    ["changeDelay", "maturity"].every(isAtMost(MAX_DELAY_SECONDS)) &&
    [...Object.values(LENT), "sourceContract"].every(isAtMost(MAX_ADDRESS));
  if (!isBound || !(isFork || equalBytes(value("_domainHash"), domain)))
    throw foreignCode(name, { chainId, contract });
  if (name === "StateMirror") return { release, name };
  for (const [part, of] of Object.entries(LENT)) {
    const address = bytesToHex(value(of).subarray(WORD - ADDRESS)) as Address;
    // A deployment without transfers or makings has the zero address.
    if (part !== "Administration" && BigInt(address) === 0n) continue;
    if (immutablesOf(await read(address), release[part as keyof typeof LENT]) === null)
      throw foreignCode(part, { chainId, contract: address });
  }
  return { release, name };
}

/** The error for a contract, or a part of it, that is not this package's. */
export function foreignCode(
  name: string,
  { chainId, contract }: { readonly chainId: bigint; readonly contract: Address },
): MintmarkError {
  const what = `${contract} on chain ${chainId} is not this version's ${name}`;
  return new MintmarkError(
    "l1_failed",
    `${what}. Check the address and the version of Mintmark; do not use the contract.`,
  );
}

/**
 * The contracts whose code a settlement contract runs, with the immutable values that name them.
 */
const LENT = {
  Administration: "administrationCode",
  Transfers: "transfersCode",
  Makings: "makingsCode",
} as const;

const WORD = 32;
const ADDRESS = 20;
/** The 12 bytes above an address are zeros. */
const MAX_ADDRESS = (1n << 160n) - 1n;
/** The contracts' `MAX_DELAY`. */
const MAX_DELAY_SECONDS = 30n * 86_400n;

/**
 * The immutable values in a contract's code, each the same at all of its places; null for any other
 * code.
 */
function immutablesOf(
  given: Uint8Array,
  { bytes, hash, immutables }: ReleasedCode[PayingContract],
): ReadonlyMap<string, Uint8Array> | null {
  if (given.length !== bytes) return null;
  const code = given.slice();
  const values = new Map<string, Uint8Array>();
  for (const [immutable, places] of Object.entries<readonly number[]>(immutables)) {
    for (const start of places) {
      const value = code.slice(start, start + WORD);
      if (!equalBytes(value, values.get(immutable) ?? value)) return null;
      values.set(immutable, value);
      code.fill(0, start, start + WORD);
    }
  }
  return bytesToHex(keccak256(code)) === hash ? values : null;
}
