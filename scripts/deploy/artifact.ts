import { readFile } from "node:fs/promises";
import type { Abi, Hex } from "viem";

/** The compiler's output for one contract, as stored by Hardhat. */
interface Artifact {
  readonly contractName: string;
  readonly abi: Abi;
  readonly bytecode: Hex;
  readonly deployedBytecode: Hex;
  readonly immutableReferences?: Readonly<
    Record<string, readonly { readonly start: number; readonly length: number }[]>
  >;
}

/** The artifact of each deployed contract, below `artifacts`. */
export const DEPLOYED = {
  StateCommitment: "contracts/StateCommitment.sol/StateCommitment",
  Transfers: "contracts/state/Transfers.sol/Transfers",
  StateMirror: "contracts/StateMirror.sol/StateMirror",
  AdminTimeLock: "contracts/AdminTimeLock.sol/AdminTimeLock",
  MintableERC20: "contracts/tokens/MintableERC20.sol/MintableERC20",
  MintableERC721: "contracts/tokens/MintableERC721.sol/MintableERC721",
  MintableERC1155: "contracts/tokens/MintableERC1155.sol/MintableERC1155",
} as const;

export type ContractName = keyof typeof DEPLOYED;

/** Reads a contract's artifact. Rejects with the remedy when the contracts are not compiled. */
export async function readArtifact(name: ContractName): Promise<Artifact> {
  const path = new URL(`../../artifacts/${DEPLOYED[name]}.json`, import.meta.url);
  const text = await readFile(path, "utf8").catch(() => {
    throw new Error(`no artifact of ${name}: compile the contracts first with \`npm run build:contracts\``);
  });
  return JSON.parse(text) as Artifact;
}

/** Whether code on a chain is this artifact's. Ignores immutables, which are zero in the artifact. */
export function isCodeOf(artifact: Artifact, code: Hex | undefined): boolean {
  if (code === undefined || code.length !== artifact.deployedBytecode.length) return false;
  const found = Buffer.from(code.slice(2), "hex");
  for (const places of Object.values(artifact.immutableReferences ?? {})) {
    for (const { start, length } of places) found.fill(0, start, start + length);
  }
  return found.equals(Buffer.from(artifact.deployedBytecode.slice(2), "hex"));
}
