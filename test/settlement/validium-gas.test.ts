import { type Hex, keccak256, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { encodeAttestation } from "../../core/protocol/attestation.ts";
import { batchRoot, manifestRoot } from "../../core/protocol/manifest.ts";
import { compactSignature } from "../../core/protocol/signature.ts";
import { validiumBatchTypedData } from "../../core/protocol/typed-data.ts";
import { createChain } from "./fixture.ts";

test("a validium commit behind another one has gas enough for a committee of 64", async () => {
  const keys = Array.from({ length: 64 }, (_, i) =>
    privateKeyToAccount(toHex(i + 1, { size: 32 })),
  );
  const signers = keys.toSorted((a, b) =>
    a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1,
  );
  const members = signers.map(({ address }) => address.toLowerCase() as Hex);
  const chain = await createChain({ committee: members, threshold: 64 });
  const l1 = await chain.connectOperator();
  const { history } = await l1.state();
  const content = keccak256("0x01");
  const batch = {
    ...({ mode: "validium", batchNumber: 0, vaultCount: 1, data: new Uint8Array() } as const),
    ...{
      assets: [],
      content,
      batchRoot: batchRoot("validium", manifestRoot([]), content),
      dataHash: keccak256("0x02"),
    },
  };
  const message = validiumBatchTypedData(l1.settlement, { ...batch, history, epoch: 0n });
  const signatures = await Promise.all(
    signers.map(async (signer, memberIndex) => ({
      memberIndex,
      ...compactSignature(await signer.signTypedData(message)),
    })),
  );
  const attestation = encodeAttestation({ threshold: 64, members, signatures });
  const { txHash, gasUsed } = await l1.commit(batch, history, attestation, { isBehind: true });
  const { gas } = await chain.client.getTransaction({ hash: txHash });
  expect(Number(gasUsed)).toBeLessThan(0.8 * Number(gas));
  await chain.close();
});
