import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import hre from "hardhat";
import {
  type Abi,
  type Address,
  createTestClient,
  createWalletClient,
  type Hex,
  http,
  pad,
  publicActions,
} from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ADMIN } from "../../scripts/sandbox/accounts.ts";
import { writeAdapter } from "../../scripts/tokens/adapter.ts";
import { type Anvil, startAnvil } from "../anvil.ts";
import { mintmark } from "./cli.ts";

/** Stands in for a settlement contract: an account. */
const SETTLEMENT: Address = `0x${"5e".repeat(20)}`;

describe("mintmark assets inspect", () => {
  let anvil: Anvil;
  let folder: string;
  beforeAll(async () => {
    anvil = await startAnvil();
    folder = await mkdtemp(join(tmpdir(), "mintmark-adapter-"));
  });
  afterAll(async () => {
    await anvil.close();
    await rm(folder, { recursive: true, force: true });
  });

  const wallet = () =>
    createWalletClient({ account: ADMIN, transport: http(anvil.url) }).extend(publicActions);
  async function deploy(
    { abi, bytecode }: { abi: Abi; bytecode: Hex },
    args: readonly unknown[],
  ): Promise<Address> {
    const hash = await wallet().deployContract({ abi, bytecode, args, chain: null });
    const { contractAddress } = await wallet().waitForTransactionReceipt({ hash });
    return contractAddress as Address;
  }
  const inspect = async (token: string, ...more: string[]) =>
    (await mintmark(["assets", "inspect", token, "--rpc", anvil.url, "--json", ...more])).json();

  test.each([
    ["StarkExpressERC721", [SETTLEMENT], { standard: "erc721", schemes: ["raw32"] }],
    ["StarkExpressERC1155", [SETTLEMENT], { standard: "erc1155", schemes: ["raw32"] }],
    ["ImxAsset", [ADMIN.address, SETTLEMENT], { standard: "erc721", schemes: ["imx"] }],
  ] as const)("knows %s, and that its withdrawals work", async (name, args, expected) => {
    const token = await deploy(
      (await hre.artifacts.readArtifact(name)) as { abi: Abi; bytecode: Hex },
      args,
    );
    const found = await inspect(token, "--contract", SETTLEMENT);
    expect(found).toMatchObject({
      ...expected,
      mintFor: true,
      withdrawal: { works: true, reason: null },
    });
    expect(found.next).toContain(`--standard ${expected.standard} --scheme ${expected.schemes[0]}`);
    expect(found.minters).toContainEqual({
      role: expect.any(String),
      address: expect.any(String),
      mints: true,
    });
  });

  test("looks behind an upgradable proxy", async () => {
    const args = [SETTLEMENT];
    const behind = await deploy(
      (await hre.artifacts.readArtifact("StarkExpressERC721")) as { abi: Abi; bytecode: Hex },
      args,
    );
    const slot = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";
    const chain = createTestClient({ mode: "anvil", transport: http(anvil.url) });
    const address: Address = `0x${"a1".repeat(20)}`;
    const forwards =
      `0x363d3d373d3d363d7f${slot.slice(2)}545af43d6000803e6038573d6000fd5b3d6000f3` as const;
    await chain.setCode({ address, bytecode: forwards });
    expect(await inspect(address)).toMatchObject({ standard: null, mintFor: false });
    await chain.setStorageAt({ address, index: slot, value: pad(behind) });
    expect(await inspect(address)).toMatchObject({ standard: "erc721", mintFor: true });
  });

  test("says who can let the settlement contract mint", async () => {
    const token = await deploy(await hre.artifacts.readArtifact("ImxAsset"), [
      ADMIN.address,
      ADMIN.address,
    ]);
    const found = await inspect(token, "--contract", SETTLEMENT);
    expect(found).toMatchObject({ schemes: ["imx"], withdrawal: { works: false } });
    expect(found.withdrawal.reason).toContain("Function can only be called by owner or IMX");
    expect(found.next).toContain(`owner() ${ADMIN.address}`);
  });

  test("knows what is no token, and what has no code", async () => {
    const other = await deploy(await hre.artifacts.readArtifact("AdministeredToken"), [
      ADMIN.address,
    ]);
    expect(await inspect(other)).toMatchObject({
      standard: null,
      next: expect.stringContaining("Check the address"),
    });
    const nothing = await mintmark(["assets", "inspect", SETTLEMENT, "--rpc", anvil.url]);
    expect(nothing.code).not.toBe(0);
    expect(nothing.stderr).toContain("has no code on this chain");
  });

  test.each(["erc20", "erc721", "erc1155"] as const)(
    "writes an adapter of an %s, whose test passes",
    async (standard) => {
      const own = join(folder, standard);
      const files = await writeAdapter(own, standard);
      const sources = await Promise.all(
        files.map(
          async (file) =>
            [file.slice(own.length + 1), { content: await readFile(file, "utf8") }] as const,
        ),
      );
      const { MintAdapterTest } = compiled(Object.fromEntries(sources));
      const address = await deploy(MintAdapterTest, []);
      for (const functionName of [
        "setUp",
        "test_theSettlementContractMints",
        "setUp",
        "test_nobodyElseMints",
      ]) {
        const hash = await wallet().writeContract({
          abi: MintAdapterTest.abi,
          address,
          functionName,
          chain: null,
        });
        expect((await wallet().waitForTransactionReceipt({ hash })).status).toBe("success");
      }
      await expect(writeAdapter(own, standard)).rejects.toThrow("EEXIST");
    },
  );

  function compiled(sources: object): { MintAdapterTest: { abi: Abi; bytecode: Hex } } {
    const { compile } = createRequire(import.meta.url)("solc") as {
      compile(input: string): string;
    };
    const settings = { outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } } };
    const output = JSON.parse(compile(JSON.stringify({ language: "Solidity", sources, settings })));
    expect(output.errors ?? []).toEqual([]);
    const { abi, evm } = output.contracts["MintAdapter.t.sol"].MintAdapterTest;
    return { MintAdapterTest: { abi, bytecode: `0x${evm.bytecode.object}` } };
  }
});
