import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import type { Address, Hash, Hex } from "../../../core/index.ts";
import {
  type MintReceipt,
  type ReceiptVault,
  receiptContents,
  receiptOf,
  receiptRoot,
  receiptTypedData,
  type VaultReceipt,
  verifyReceipt,
} from "../../../core/protocol/receipt.ts";

const SETTLEMENT = { chainId: 31_337n, contract: `0x${"aa".repeat(20)}` } as const;
const OPERATOR = privateKeyToAccount(`0x${"11".repeat(32)}`);
const ASSET = "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a20";
const CHAINS = { [ASSET]: 31_337n };

function vaultsOf(count: number) {
  return Array.from({ length: count }, (_, i) => ({
    vaultId: BigInt(i),
    ownerAddress: `0x${(i + 1).toString(16).padStart(40, "0")}` as Address,
    assetId: ASSET,
    assetType: `0x${"0c".repeat(32)}` as Hash,
    amount: BigInt(i + 1),
    mintingBlob: `0x${(0x30 + (i % 10)).toString(16)}` as Hex,
  })) satisfies ReceiptVault[];
}

async function signed(
  vaults: readonly ReceiptVault[],
  time = 1_893_456_000_000,
): Promise<MintReceipt> {
  const message = {
    root: receiptRoot(receiptContents(vaults, CHAINS)),
    count: vaults.length,
    time,
  };
  const signature = await OPERATOR.signTypedData(receiptTypedData(SETTLEMENT, message));
  return { ...message, signer: OPERATOR.address, signature, chainIds: CHAINS };
}

const verify = (receipt: VaultReceipt) => verifyReceipt(SETTLEMENT, OPERATOR.address, receipt);

describe("a vault's receipt", () => {
  it("is verifiable on its own, for any vault of any number of them", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.nat(), async (count, pick) => {
        const vaults = vaultsOf(count);
        const receipt = await signed(vaults);
        expect(await verify(receiptOf({ vaults, receipt }, BigInt(pick % count)))).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  it("is of this signer, contract and chain only", async () => {
    const vaults = vaultsOf(5);
    const one = receiptOf({ vaults, receipt: await signed(vaults) }, 3n);
    const other = privateKeyToAccount(`0x${"22".repeat(32)}`).address;
    expect(await verifyReceipt(SETTLEMENT, other, one)).toBe(false);
    expect(await verifyReceipt({ ...SETTLEMENT, chainId: 1n }, OPERATOR.address, one)).toBe(false);
    const contract = `0x${"bb".repeat(20)}` as const;
    expect(await verifyReceipt({ ...SETTLEMENT, contract }, OPERATOR.address, one)).toBe(false);
  });

  it("fails for any change", async () => {
    const vaults = vaultsOf(5);
    const receipt = await signed(vaults);
    const one = receiptOf({ vaults, receipt }, 3n);
    const two = receiptOf({ vaults, receipt }, 2n);
    const { siblings, vault } = one;
    const changed: VaultReceipt[] = [
      { ...one, vault: two.vault },
      { ...one, vault: { ...vault, amount: vault.amount + 1n } },
      { ...one, vault: { ...vault, vaultId: vault.vaultId + 1n } },
      { ...one, vault: { ...vault, owner: two.vault.owner } },
      { ...one, index: 2 },
      { ...one, index: 3 + 8 },
      { ...one, index: -1 },
      { ...one, count: 6 },
      { ...one, count: 1 },
      { ...one, siblings: siblings.slice(1) },
      { ...one, siblings: [...siblings, `0x${"00".repeat(32)}`] },
      { ...one, siblings: siblings.toReversed() },
      { ...one, time: one.time + 1 },
      { ...one, time: 0.5 },
      { ...one, signature: "0x" },
      { ...one, signature: `0x${"00".repeat(65)}` },
    ];
    for (const receipt of changed) expect(await verify(receipt)).toBe(false);
  });

  it("is made only of the signed vaults", async () => {
    const vaults = vaultsOf(3);
    const receipt = await signed(vaults);
    expect(() => receiptOf({ vaults, receipt }, 9n)).toThrow(
      expect.objectContaining({ code: "vault_not_found" }),
    );
    const later = vaults.map((vault) => ({ ...vault, amount: vault.amount + 1n }));
    for (const wrong of [later, vaults.slice(1), vaults.toReversed()]) {
      expect(() => receiptOf({ vaults: wrong, receipt }, 1n)).toThrow(
        expect.objectContaining({ code: "validation_failed" }),
      );
    }
    expect(() => receiptOf({ vaults, receipt: { ...receipt, chainIds: {} } }, 1n)).toThrow(
      "chain of asset",
    );
  });

  it("has these bytes", async () => {
    const vaults = vaultsOf(3);
    const receipt = await signed(vaults);
    expect(receipt).toMatchInlineSnapshot(`
      {
        "chainIds": {
          "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a20": 31337n,
        },
        "count": 3,
        "root": "0x234acac540adc1ccb9f44a6218bd8fedd92b4ce9c52c9f5d5b424e15aece9c72",
        "signature": "0xd85c7e305f28586cb1a6358894b649d340ef305179c98334f4bfe215f75966637a7aa2bf342e2d83e25ddd2ba3e33cdb9b3e637c08e78e52253c0fd38321737f1b",
        "signer": "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A",
        "time": 1893456000000,
      }
    `);
  });
});
