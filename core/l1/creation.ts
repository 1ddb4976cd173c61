import * as viem from "viem";
import { getBlock } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import type { Address } from "../model.ts";
import { foreignCode, type PayingContract, releaseOf } from "../protocol/own-code.ts";
import { stateCommitmentAbi, stateMirrorAbi } from "./abi.ts";
import { askL1, codeOn, type L1Client } from "./connection.ts";

const CONSTRUCTORS = {
  StateCommitment: stateCommitmentAbi[0],
  StateMirror: stateMirrorAbi[0],
} as const;

/** The constructor's arguments, as the contract documents them. */
export interface ConstructorArguments {
  readonly admin: Address;
  readonly guardian?: Address;
  readonly operator?: Address;
  readonly committee: readonly Address[];
  readonly threshold: number;
}

/**
 * Checks a contract's code, and that the input of the transaction that created it is the creation
 * code of the same release. So the storage holds only what that release's code wrote: no forged
 * header, no role that no event told of. Rejects with `l1_failed`, also for a contract that another
 * contract created. Returns the contract's name and its constructor's arguments. `blockNumber` is
 * the block of the creation.
 *
 * @param expected - default either, a settlement contract or a mirror
 */
export async function requireOwnCreation(
  client: L1Client,
  settlement: { readonly chainId: bigint; readonly contract: Address },
  blockNumber: bigint,
  expected?: PayingContract,
): Promise<{ readonly name: PayingContract; readonly created: ConstructorArguments }> {
  const { release, name } = await releaseOf(codeOn(client), settlement, expected);
  const { contract, chainId } = settlement;
  const { transactions } = await askL1(`reading block ${blockNumber} of chain ${chainId}`, () =>
    getBlock(client, { blockNumber, includeTransactions: true }).catch((error: unknown) => {
      // A block that the chain does not have has created nothing.
      if (error instanceof viem.BlockNotFoundError) return { transactions: [] };
      throw error;
    }),
  );
  const creates = ({ to, from, nonce }: (typeof transactions)[number]) =>
    to === null &&
    viem.isAddressEqual(viem.getContractAddress({ from, nonce: BigInt(nonce) }), contract);
  const input: viem.Hex | undefined = transactions.find(creates)?.input;
  const remedy =
    "Give the block of its creation. Do not use a contract that another contract created.";
  if (input === undefined)
    throw new MintmarkError(
      "l1_failed",
      `no transaction of block ${blockNumber} created ${contract}. ${remedy}`,
    );
  const { bytes, hash } = release[name].creation;
  if (viem.size(input) <= bytes || viem.keccak256(viem.slice(input, 0, bytes)) !== hash)
    throw foreignCode(`${name}: another constructor wrote its storage`, settlement);
  const [config] = viem.decodeAbiParameters(CONSTRUCTORS[name].inputs, viem.slice(input, bytes));
  return { name, created: config as ConstructorArguments };
}
