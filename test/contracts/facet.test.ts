import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import {
  type Abi,
  encodeFunctionData,
  keccak256,
  slice,
  toFunctionSelector,
  toFunctionSignature,
} from "viem";
import { describe, expect, it } from "vitest";
import { contractCode } from "../../core/protocol/contract-code.ts";
import { openChain } from "./fixture/deployment.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const solc = createRequire(import.meta.url)("solc") as {
  compile(input: string, options: { import(path: string): { contents: string } }): string;
};
const { fresh } = await openChain();

interface Compiled {
  readonly abi: Abi;
  readonly storageLayout: {
    readonly storage: readonly { label: string; slot: string; offset: number; type: string }[];
    readonly types: Readonly<
      Record<string, { encoding: string; numberOfBytes: string; members?: readonly Slot[] }>
    >;
  };
}
type Slot = Compiled["storageLayout"]["storage"][number];

/** The compiler's own answer about the contracts. It writes no code, so this is quick. */
function compiled() {
  const read = (path: string) =>
    readFileSync(`${ROOT}${path.startsWith("@") ? "node_modules/" : ""}${path}`, "utf8");
  const [settlement, transfers, makings] = [
    "contracts/StateCommitment.sol",
    "contracts/state/Transfers.sol",
    "contracts/state/Makings.sol",
  ] as const;
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(
      [settlement, transfers, makings].map((path) => [path, { content: read(path) }]),
    ),
    settings: { outputSelection: { "*": { "*": ["abi", "storageLayout"] } } },
  };
  const output = solc.compile(JSON.stringify(input), {
    import: (path) => ({ contents: read(path) }),
  });
  const { contracts } = JSON.parse(output) as {
    contracts: Record<string, Record<string, Compiled>>;
  };
  const of = (path: string, name: string): Compiled => {
    const found = contracts[path]?.[name];
    if (found === undefined) throw new Error(`${name} does not compile: ${output}`);
    return found;
  };
  return {
    settlement: of(settlement, "StateCommitment"),
    administration: of("contracts/state/Administration.sol", "Administration"),
    transfers: of(transfers, "Transfers"),
    transfersInterface: of("contracts/interfaces/ITransfers.sol", "ITransfers"),
    makings: of(makings, "Makings"),
    makingsInterface: of("contracts/interfaces/IMakings.sol", "IMakings"),
  };
}

const functionsOf = (abi: Abi) =>
  abi.filter((item) => item.type === "function").map((item) => toFunctionSignature(item));

/** A call of `settle` runs this of its own code. The settlement contract has no such function. */
const INNER =
  "settleTrade((uint8,uint64,(bytes32,uint32,uint64,uint64),uint256,uint8,bytes32[])[],bytes,uint64)";
const reachable = (abi: Abi) => functionsOf(abi).filter((signature) => signature !== INNER);

/** Names of types have numbers of the compiler's, which differ. */
const named = (type: string) => type.replaceAll(/\d+_storage/g, "_storage");
const placed = ({ label, slot, offset, type }: Slot) => ({
  label,
  slot,
  offset,
  type: named(type),
});

describe("the code that the settlement contract borrows", () => {
  const { settlement, administration, ...lent } = compiled();
  const pieces = [
    ["transfers", lent.transfers, lent.transfersInterface],
    ["makings", lent.makings, lent.makingsInterface],
  ] as const;

  it("sees the storage as the contract does: slots, types and members are the same", () => {
    const own = settlement.storageLayout;
    expect(own.storage.length).toBeGreaterThan(15);
    for (const { storageLayout } of [administration, lent.transfers, lent.makings])
      expect(storageLayout.storage.map(placed)).toEqual(own.storage.map(placed));
    const types = ({ types }: Compiled["storageLayout"]) =>
      Object.entries(types)
        .map(([name, { encoding, numberOfBytes, members }]) => ({
          name: named(name),
          encoding,
          numberOfBytes,
          members: members?.map(placed),
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    expect(types(administration.storageLayout)).toEqual(types(own));
    for (const [, { storageLayout }] of pieces)
      expect(types(own)).toEqual(expect.arrayContaining(types(storageLayout)));
  });

  it("has no function that the contract has too", () => {
    const selectors = ({ abi }: Compiled) =>
      functionsOf(abi).map((signature) => toFunctionSelector(signature));
    const all = [settlement, administration, lent.transfers, lent.makings].flatMap(selectors);
    expect(new Set(all).size).toBe(all.length);
  });

  it("is what the contract itself names, the same in each deployment", async () => {
    const { state, publicClient } = await fresh();
    for (const [code, hash] of [
      [await state.read.administrationCode(), contractCode.Administration.hash],
      [await state.read.transfersCode(), contractCode.Transfers.hash],
      [await state.read.makingsCode(), contractCode.Makings.hash],
    ] as const) {
      const found = keccak256((await publicClient.getCode({ address: code })) ?? "0x");
      // Code that is measured for coverage is not the code that is deployed.
      if (process.env.HARDHAT_COVERAGE === undefined) expect(found).toBe(hash);
    }
    const own = functionsOf(settlement.abi);
    expect(own).toEqual(
      expect.arrayContaining([
        "administrationCode()",
        "transfersCode()",
        "makingsCode()",
        "changeDelay()",
      ]),
    );
  });

  it.each(pieces)("has in the code of %s what their interface says", async (_, code, said) => {
    expect(reachable(code.abi).toSorted()).toEqual(functionsOf(said.abi).toSorted());
    const { abi } = await hre.artifacts.readArtifact("StateCommitment");
    const declared = new Set(abi.map((item) => JSON.stringify(item)));
    const undeclared = code.abi.filter((item) => !declared.has(JSON.stringify(item)));
    expect(reachable(undeclared)).toEqual([]);
    expect(undeclared.filter(({ type }) => type !== "function")).toEqual([]);
  });

  it("makes the documented interface whole, in the artifact too", async () => {
    const { abi } = await hre.artifacts.readArtifact("StateCommitment");
    const all = functionsOf(abi as Abi);
    const contracts = [settlement, administration, lent.transfers, lent.makings];
    expect(new Set(all)).toEqual(new Set(contracts.flatMap(({ abi }) => reachable(abi))));
    expect(new Set(all).size).toBe(all.length);
    const documented = functionsOf(
      (await hre.artifacts.readArtifact("IStateCommitment")).abi as Abi,
    );
    expect(all).toEqual(expect.arrayContaining(documented));
    expect(all.filter((signature) => !documented.includes(signature)).sort()).toEqual([
      "DEFAULT_ADMIN_ROLE()",
      "GUARDIAN_ROLE()",
      "OPERATOR_ROLE()",
      "getRoleAdmin(bytes32)",
      "grantRole(bytes32,address)",
      "hasRole(bytes32,address)",
      "renounceRole(bytes32,address)",
      "revokeRole(bytes32,address)",
      "supportsInterface(bytes4)",
      "withdrawItem((bytes32,bytes32,uint32,uint8,address,uint8,uint8,uint256,uint8),uint64,uint256,uint256)",
    ]);
  });

  it("answers for the contract, which takes no ether, no call without a function and no unknown function", async () => {
    const { state, publicClient, config, actors } = await fresh();
    const account = actors.admin.account.address;
    const pause = encodeFunctionData({
      abi: state.abi,
      functionName: "pauseCommits",
      args: [true],
    });
    const call = (data: `0x${string}`, value = 0n) =>
      publicClient.call({ account, to: state.address, data, value });
    await expect(call(pause)).resolves.toBeDefined();
    await expect(call(pause, 1n)).rejects.toThrow();
    await expect(call("0x")).rejects.toThrow();
    await expect(call("0x", 1n)).rejects.toThrow();
    await expect(call("0xdeadbeef")).rejects.toThrow();
    // Selectors next to those of the pieces are no functions.
    const near = pieces.flatMap(([, { abi }]) =>
      functionsOf(abi).map((signature) => slice(toFunctionSelector(signature), 0, 3)),
    );
    await expect(call(toFunctionSelector(INNER))).rejects.toThrow();
    for (const bytes of near) await expect(call(`${bytes}00`), bytes).rejects.toThrow();
    expect(await state.read.changeDelay()).toBe(config.changeDelay);
  });
});
