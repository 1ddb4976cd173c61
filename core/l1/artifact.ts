import { readFileSync } from "node:fs";
import type { Abi, Hex } from "viem";

/**
 * A deployed contract as the compiler made it. Its standard input is made of `settings` and the
 * tracked `sources`.
 */
export interface Artifact {
  readonly contractName: ContractName;
  readonly sourceName: string;
  /** The compiler's version. */
  readonly compiler: string;
  readonly settings: unknown;
  /** Names in contracts/compiled/sources.json. */
  readonly sources: readonly string[];
  /** SHA-256 of the compiler's version, the sources and the settings. */
  readonly hash: string;
  readonly abi: Abi;
  readonly bytecode: Hex;
  /** With zeros for immutable values. */
  readonly deployedBytecode: Hex;
  /** Where the immutable values are, by name. */
  readonly immutableReferences: Record<
    string,
    { readonly start: number; readonly length: number }[]
  >;
}

export const CONTRACT_NAMES = [
  "StateCommitment",
  "Administration",
  "Transfers",
  "Makings",
  "StateMirror",
  "AdminTimeLock",
  "MintableERC20",
  "MintableERC721",
  "MintableERC1155",
  "EscrowFactory",
  "EscrowERC20",
  "EscrowERC721",
] as const;

/** A contract that is deployed. */
export type ContractName = (typeof CONTRACT_NAMES)[number];

export function readArtifact(name: ContractName): Artifact {
  const path = new URL(`../../contracts/compiled/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(path, "utf8")) as Artifact;
}
