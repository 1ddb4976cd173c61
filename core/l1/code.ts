import { type Address, domainSeparator, getAddress, type Hex, hexToBytes, keccak256, slice, zeroAddress } from "viem";
import { MintmarkError } from "../errors.ts";
import { administrationCodeHash, stateCommitmentCode, transfersCodeHash } from "./abi.ts";
import type { L1Client } from "./client.ts";
import { askL1 } from "./failure.ts";

/**
 * Checks that a settlement contract, and both contracts whose code it runs on its own storage, have the code of this
 * package. Immutable values count too. Rejects with `l1_failed`, and names the first part that differs. An account that
 * delegates to other code (EIP-7702) differs.
 */
export async function requireOwnCode(
  client: Pick<L1Client, "getCode">,
  { chainId, contract }: { readonly chainId: bigint; readonly contract: Address },
): Promise<void> {
  const codeOf = async (address: Address) =>
    (await askL1(`reading the code of ${address}`, () => client.getCode({ address }))) ?? "0x";
  const require = (isOwn: boolean, address: Address, name: string) => {
    if (isOwn) return;
    const what = `${address} on chain ${chainId} is not this version's ${name}`;
    throw new MintmarkError(
      "l1_failed",
      `${what}. Check the address and the version of Mintmark; do not use the contract.`,
    );
  };
  const code = await codeOf(contract);
  require(isStateCommitment(code), contract, "StateCommitment");
  // A fork of the chain has another id. There the contract computes its domain anew.
  const isFork = BigInt(immutable(code, "_domainChainId")) !== chainId;
  const domain = { name: "Mintmark", version: "1", chainId, verifyingContract: getAddress(contract) };
  require(isFork || immutable(code, "_domainHash") === domainSeparator({ domain }), contract, "StateCommitment");
  const administration = slice(immutable(code, "administrationCode"), 12);
  require(keccak256(await codeOf(administration)) === administrationCodeHash, administration, "Administration");
  const transfers = slice(immutable(code, "transfersCode"), 12);
  if (transfers === zeroAddress) return;
  require(keccak256(await codeOf(transfers)) === transfersCodeHash, transfers, "Transfers");
}

type Immutable = keyof typeof stateCommitmentCode.immutables;
const BYTES = 32;

/** Whether code is that of a `StateCommitment` with any immutable values, each the same at all of its places. */
function isStateCommitment(code: Hex): boolean {
  const bytes = hexToBytes(code);
  if (bytes.length !== stateCommitmentCode.bytes) return false;
  for (const [name, places] of Object.entries(stateCommitmentCode.immutables)) {
    const value = immutable(code, name as Immutable);
    for (const start of places) {
      if (slice(code, start, start + BYTES) !== value) return false;
      bytes.fill(0, start, start + BYTES);
    }
  }
  return keccak256(bytes) === stateCommitmentCode.hash;
}

function immutable(code: Hex, name: Immutable): Hex {
  const [start] = stateCommitmentCode.immutables[name];
  return slice(code, start, start + BYTES);
}
