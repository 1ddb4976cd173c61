import { type Hex, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, expect, test } from "vitest";
import type { Consent } from "../../core/ports.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { manifestHash } from "../../core/protocol/blob-batch.ts";
import { assetsHash, consentTypedData } from "../../core/protocol/consent.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN } from "../../scripts/sandbox/accounts.ts";
import { at, createChain } from "./fixture.ts";
import { entry, sealed } from "./signed-batches.ts";

const KEY = privateKeyToAccount(`0x${"11".repeat(32)}`);
const WALLETS = Array.from({ length: 10 }, (_, i) => toHex(0xf11b_0000 + i, { size: 20 }));
/** Says yes to every question about a signature. */
const SAYS_YES = "0x631626ba7e60e01b5f5260205ff3";
/** Burns all the gas that it gets. */
const BURNS = "0xfe";
/** Less gas than the wallets of a batch can burn. */
const BLOCK_GAS = 1_000_000;

const DIGEST: Hex = `0x${"11".repeat(32)}`;

const chain = await createChain();
/** One for each issuer: the key's first, then the wallets'. */
const types: Hex[] = [];
for (const issuer of [KEY.address, ...WALLETS]) {
  const config = {
    standard: "erc721",
    name: "Issued",
    symbol: "I",
    admin: ADMIN.address,
    issuer,
  } as const;
  const { address } = await deployToken(chain.by, chain.settlement.address, config);
  types.push(assetType("erc721", address, 1n));
}
await chain.rpc("evm_setBlockGasLimit", [toHex(BLOCK_GAS)]);
// The first block with this limit.
await chain.mine(1);
afterAll(() => chain.close());

/**
 * Commits the next batch with a vault of each token and the consent of each issuer. Returns the
 * tokens left out.
 */
async function commit(batchNumber: number): Promise<readonly number[]> {
  const l1 = await chain.connectOperator();
  const slots = types.map((type) => ({ ...entry("erc721", `${batchNumber}`), assetType: type }));
  const batch = sealed(batchNumber, slots, "zk-rollup");
  const consents = types.map(async (type, i): Promise<Consent> => {
    const assets = [{ chainId: 31_337n, assetType: type, issuerEpoch: 1n }];
    const manifest = manifestHash(batch.assets);
    const message = { ...batch, manifest, assetsHash: assetsHash(assets) };
    const signature = await KEY.signTypedData(consentTypedData(l1.settlement, message));
    return { issuer: [KEY.address, ...WALLETS][i] as Hex, assets, signature, byWallet: i > 0 };
  });
  const { history } = await l1.state();
  const { blockNumber } = await l1.commit(batch, history, "0x", {
    consents: await Promise.all(consents),
  });
  const [event] = await l1.events(blockNumber, blockNumber);
  const places = (event?.type === "batchCommitted" && event.leftOut) || [];
  return places.map((place) => types.indexOf(at(batch.assets, place).assetType));
}

const become = async (code: Hex) => {
  for (const wallet of WALLETS) await chain.rpc("hardhat_setCode", [wallet, code]);
};

test("commits a batch whose wallet contracts would burn more gas than a transaction has, without them", async () => {
  await become(BURNS);
  expect((await commit(0)).toSorted((a, b) => a - b)).toEqual(WALLETS.map((_, i) => i + 1));
});

test("asks as many wallet contracts as fit, and leaves out the others only", async () => {
  await become(SAYS_YES);
  const leftOut = await commit(1);
  expect(leftOut).not.toContain(0);
  expect(leftOut.length).toBeGreaterThan(0);
  expect(leftOut.length).toBeLessThan(WALLETS.length / 2);
});

test.each([
  // PUSH3 2,000,000 GAS LT: the answer is yes only to a caller that gives less.
  ["that wants less than 2,000,000 gas", "0x621e84805a10631626ba7e0260e01b5f5260205ff3", true],
  ["that never ends", "0x5b5f56", false],
  ["that says no", "0x60205ff3", false],
  ["without code", "0x", false],
] as const)("a wallet %s is asked with bounded gas", async (_name, code, taken) => {
  await chain.rpc("hardhat_setCode", [at(WALLETS, 0), code]);
  const l1 = await chain.connectOperator();
  expect(await l1.verifySignature(at(WALLETS, 0), DIGEST, "0x1234")).toBe(taken);
});
