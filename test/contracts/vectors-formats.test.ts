import fc from "fast-check";
import { network } from "hardhat";
import {
  type Address,
  concat,
  type Hex,
  hexToBytes,
  isHex,
  maxUint256,
  numberToHex,
  parseAbi,
  recoverAddress,
  size,
  slice,
  toHex,
  zeroAddress,
  zeroHash,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, it } from "vitest";
import { packedAssets, packedEntries } from "../../core/l1/arguments.ts";
import { tokenIdOf } from "../../core/protocol/minting-blob.ts";
import { compactBytes } from "../../core/protocol/signature.ts";
import { naiveWords } from "../core/naive/naive-words.ts";
import { anyHash } from "../core/protocol/arbitrary.ts";
import { orderOf, vectors } from "../core/protocol/vectors.ts";
import { pointOf } from "./fixture/blobs.ts";
import { MODE, STANDARD } from "./fixture/deployment.ts";
import { headerStruct, vaultStruct } from "./fixture/vectors.ts";

const { viem } = await network.create("local");
const harness = await viem.deployContract("ProofHarness");

describe("Solidity and the vectors agree on", () => {
  const assets = vectors("assets").vectors;
  it.each(assets)(
    "asset type and id of $name",
    async ({ standard, token, quantum, assetType, mintingBlob, mintableAssetId }) => {
      expect(await harness.read.assetType([STANDARD[standard], token, BigInt(quantum)])).toBe(
        BigInt(assetType),
      );
      const id = await harness.read.mintableAssetId([
        STANDARD[standard],
        BigInt(assetType),
        mintingBlob,
      ]);
      expect(id).toBe(BigInt(mintableAssetId));
    },
  );

  it.each(vectors("starkex-assets").vectors)("StarkEx's asset id $assetId", async (vector) => {
    const { standard, token, quantum, mintingBlob, assetId } = vector;
    const type = await harness.read.assetType([STANDARD[standard], token, BigInt(quantum)]);
    expect(await harness.read.mintableAssetId([STANDARD[standard], type, mintingBlob])).toBe(
      BigInt(assetId),
    );
  });

  const tokens = vectors("minting-blobs").vectors.filter(({ standard }) => standard !== "erc20");
  it.each(tokens)(
    "the token id of $scheme minting blob $canonical",
    async ({ scheme, canonical, tokenId }) => {
      const read = {
        mintmark: () => harness.read.mintmarkTokenId([canonical]),
        imx: async () => (await harness.read.imxTokenId([canonical]))[0],
        raw32: () => harness.read.rawTokenId([canonical]),
      };
      const id = await read[scheme]();
      expect(id).toBe(BigInt(tokenId ?? -1n));
    },
  );

  it("which token any minting blob names, and which none, in each scheme", async () => {
    const numbers = fc.oneof(
      fc.bigInt({ min: 0n, max: 1n << 258n }).map(String),
      fc.constantFrom(maxUint256, maxUint256 + 1n, 10n ** 77n, 10n ** 78n).map(String),
      // 2.1 * 10^77 modulo 2^256 is as large as a number of 78 digits that begins with 1.
      fc
        .tuple(fc.integer({ min: 1, max: 9 }), fc.nat(9))
        .map(([a, b]) => `${a}${b}${"0".repeat(76)}`),
      fc.constantFrom("", "0", "00", "007", "-1", "9x"),
    );
    const texts = fc.oneof(
      numbers,
      fc
        .tuple(numbers, fc.string({ maxLength: 20 }))
        .map(([id, blueprint]) => `{${id}}:{${blueprint}}`),
    );
    const spoilt = fc.tuple(texts, fc.nat(), fc.string({ maxLength: 1 })).map(([text, at, one]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + one + text.slice(place + 1);
    });
    const mintingBlobs = fc.oneof(
      fc.oneof(texts, spoilt).map((text) => toHex(text)),
      fc.uint8Array({ minLength: 31, maxLength: 33 }).map((bytes) => toHex(bytes)),
    );
    const property = fc.asyncProperty(mintingBlobs, async (mintingBlob) => {
      if (mintingBlob === "0x" || size(mintingBlob) > 255) return;
      const named = (scheme: "mintmark" | "imx" | "raw32") => {
        try {
          return tokenIdOf("erc721", scheme, mintingBlob);
        } catch {
          return null;
        }
      };
      const told = [
        await harness.read.mintmarkTokenId([mintingBlob]),
        await harness.read.imxTokenId([mintingBlob]).then(([id]) => id, refusedByName),
        await harness.read.rawTokenId([mintingBlob]).catch(refusedByName),
      ];
      expect(told, mintingBlob).toEqual([named("mintmark"), named("imx"), named("raw32")]);
    });
    await fc.assert(property, { numRuns: 300 });
  });
  const refusedByName = (error: Error) => {
    expect(error.message).toContain("MintingBlobInvalid");
    return null;
  };

  // Minting blobs that are no hex, too long, or empty never reach a token.
  const refused = vectors("minting-blobs").refused.filter(
    ({ scheme, standard, input }) =>
      scheme !== "mintmark" && standard !== "erc20" && isHex(input) && input.length % 2 === 0,
  );
  it.each(refused)("refusing $scheme minting blob $input", async ({ scheme, input }) => {
    await viem.assertions.revertWithCustomError(
      harness.read[scheme === "imx" ? "imxTokenId" : "rawTokenId"]([input as Hex]) as never,
      harness,
      "MintingBlobInvalid",
    );
  });

  it.each(vectors("vaults").vectors)(
    "the leaf of vault $vault.vaultId",
    async ({ vault, assetIndex, leaf }) => {
      expect(await harness.read.vaultLeaf([vaultStruct(vault), BigInt(assetIndex)])).toBe(leaf);
    },
  );

  const { stateLeaves, commitments, headers } = vectors("commitments");
  it.each(stateLeaves)("the state leaf of batch $batchNumber", async (vector) => {
    const { batchNumber, vaultCount, dataHash, batchRoot, stateLeaf } = vector;
    const args = [BigInt(batchNumber), Number(vaultCount), dataHash, batchRoot] as const;
    expect(await harness.read.stateLeaf(args)).toBe(stateLeaf);
  });

  it.each(commitments)(
    "the commitment to $countValidium and $countRollup batches",
    async (vector) => {
      const { settlement, rootValidium, rootRollup, countValidium, countRollup, commitment } =
        vector;
      const counts = [BigInt(countValidium), BigInt(countRollup)] as const;
      const source = [BigInt(settlement.chainId), settlement.contract] as const;
      expect(
        await harness.read.stateCommitment([...source, rootValidium, rootRollup, ...counts]),
      ).toBe(commitment);
    },
  );

  it("the history before the first commit is the commitment to the empty state", async () => {
    const { settlement, history } = vectors("commitments").emptyHistory;
    const zero = await harness.read.foldEmpty([0n, Array(32).fill(zeroHash)]);
    const source = [BigInt(settlement.chainId), settlement.contract] as const;
    expect(await harness.read.stateCommitment([...source, zero, zero, 0n, 0n])).toBe(history);
  });

  it.each(vectors("commitments").histories)("the history after commit $commits", async (vector) => {
    const { history, mode, stateLeaf, next } = vector;
    expect(await harness.read.nextHistory([history, Number(mode), stateLeaf])).toBe(next);
  });

  it.each(vectors("manifests").vectors)(
    "the manifest of $assets.length assets without $leftOut",
    async (vector) => {
      const { assets, leftOut, root, paths } = vector;
      const named = assets.map(({ chainId, assetType }) => ({
        chainId: BigInt(chainId),
        assetType,
      }));
      const leaves = await Promise.all(
        named.map(({ chainId, assetType }, i) =>
          leftOut.includes(String(i))
            ? zeroHash
            : harness.read.manifestLeaf([chainId, BigInt(assetType)]),
        ),
      );
      expect(await harness.read.rootOfLeaves([leaves])).toBe(root);
      const bits = leftOut.reduce((sum, place) => sum | (1n << BigInt(place)), 0n);
      expect(await harness.read.hashManifest([packedAssets(named), bits])).toBe(root);
      for (const { chainId, assetType, leaf, index, siblings } of paths) {
        const asset = [BigInt(chainId), BigInt(assetType)] as const;
        expect(await harness.read.manifestLeaf(asset)).toBe(leaf);
        expect(await harness.read.manifestRootOf([...asset, Number(index), siblings])).toEqual([
          true,
          root,
        ]);
      }
    },
  );

  it.each(vectors("manifests").batchRoots)("the batch root of kind $kind", async (vector) => {
    const { kind, manifestRoot, content, batchRoot } = vector;
    expect(await harness.read.hashBatchRoot([Number(kind), manifestRoot, content])).toBe(batchRoot);
  });

  const elements = vectors("blob-elements");
  const wordsOf = (
    vault: { owner: Address; amount: bigint; mintingBlob: Hex },
    assetIndex: bigint,
  ) => harness.read.wordsOf([{ vaultId: 0n, chainId: 0n, assetType: 0n, ...vault }, assetIndex]);
  it.each(elements.vectors)(
    "the words of $name",
    async ({ amount, mintingBlob, assetIndex, ...vector }) => {
      const vault = { owner: elements.owner, amount: BigInt(amount), mintingBlob };
      const [head, continuations] = await wordsOf(vault, BigInt(assetIndex));
      const rest = continuations.slice(2).match(/.{62}/g) ?? [];
      const place = rest.length === 0 ? 0n : BigInt(elements.continuation);
      const placed = await harness.read.placed([head, place]);
      expect([numberToHex(placed, { size: 32 }), ...rest.map((each) => `0x0a${each}`)]).toEqual(
        vector.elements,
      );
    },
  );

  it.each([
    ["amount 0", 0n, "0x"],
    ["amount 2^63", 2n ** 63n, "0x"],
    ["amount 2^64 - 1", 2n ** 64n - 1n, "0x37"],
    ["a minting blob of 256 bytes", 1n, `0x${"78".repeat(256)}`],
  ] as const)("no words for %s", async (_, amount, mintingBlob) => {
    expect(await wordsOf({ owner: elements.owner, amount, mintingBlob }, 0n)).toEqual([0n, "0x"]);
  });

  it("the words of any vault", async () => {
    const ids = fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 256n }),
      fc.bigInt({ min: 0n, max: 2n ** 41n }),
    );
    const mintingBlobs = fc.oneof(
      ids.map((id) => toHex(String(id))),
      ids.map((id) => toHex(`{${id}}:{}`)),
      fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => toHex(bytes)),
      fc.uint8Array({ maxLength: 64 }).map((bytes) => toHex(bytes)),
      fc.uint8Array({ minLength: 1, maxLength: 255, size: "max" }).map((bytes) => toHex(bytes)),
      fc
        .constantFrom("007", "{}:{}", "{01}:{}", "{1}:{x}", "{1}:{}x", "}:{}")
        .map((text) => toHex(text)),
    );
    const amounts = fc.oneof(
      fc.constant(1n),
      fc.bigInt({ min: 1n, max: 2n ** 41n }),
      fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
    );
    const property = fc.asyncProperty(
      mintingBlobs,
      amounts,
      fc.nat(254),
      async (mintingBlob, amount, index) => {
        const vault = { owner: elements.owner, amount, mintingBlob };
        const { head, rest } = naiveWords(vault, index);
        expect(await wordsOf(vault, BigInt(index))).toEqual([
          BigInt(`0x${head}`),
          `0x${rest.join("")}`,
        ]);
      },
    );
    await fc.assert(property, { numRuns: 300 });
  });

  it("which bytes are decimals, without reading on behind the first words of a text", async () => {
    const client = await viem.getPublicClient();
    const { abi, address } = harness;
    const gasOf = (text: string) =>
      client.estimateContractGas({
        abi,
        address,
        functionName: "mintmarkTokenId",
        args: [toHex(text)],
      });
    // Too long for a number, so no byte of it is read.
    const long = await gasOf("x".repeat(100));
    for (const text of ["x".repeat(61), `12${"x".repeat(59)}`, "x".repeat(78)])
      expect(await gasOf(text)).toBeLessThan(long + 1_000n);
  });

  it.each(elements.contents)("the content of $vaultCount slots in blobs", async (vector) => {
    const { vaultCount, manifestHash, versionedHashes, content } = vector;
    expect(
      await harness.read.blobContent([BigInt(vaultCount), manifestHash, versionedHashes]),
    ).toBe(content);
  });

  it.each([0, 1, 2, 1234, 2048, 4095])("the point of element %i", async (place) => {
    expect(await harness.read.pointOf([BigInt(place)])).toBe(pointOf(place));
  });

  it.each(headers)("the header hash of sequence $sequence", async (vector) => {
    expect(await harness.read.headerHash([headerStruct(vector)])).toBe(vector.headerHash);
  });
});

describe("Solidity and the vectors agree on what is signed:", () => {
  type Harness = Awaited<ReturnType<typeof signatureHarness>>;
  const attested = vectors("attestations");

  it("who signed, of any bytes: 65 with v as 27 or 28, or the compact 64, and no large s", async () => {
    const { address } = await signatureHarness(attested.settlement.contract);
    const abi = parseAbi([
      "function signerOf(bytes32 digest, bytes signature) view returns (address)",
    ]);
    const client = await viem.getPublicClient();
    const signerOf = (digest: Hex, signature: Hex) =>
      client.readContract({ abi, address, functionName: "signerOf", args: [digest, signature] });
    const half = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
    const expected = async (hash: Hex, signature: Hex) => {
      if (size(signature) !== 64 && size(signature) !== 65) return zeroAddress;
      const [r, s, v] = [
        slice(signature, 0, 32),
        slice(signature, 32, 64),
        size(signature) === 65 ? slice(signature, 64) : null,
      ];
      const parity = v === null ? Number(BigInt(s) >> 255n) : Number(v) - 27;
      const bare = toHex(v === null ? BigInt(s) & ((1n << 255n) - 1n) : BigInt(s), { size: 32 });
      if ((parity !== 0 && parity !== 1) || BigInt(bare) > half) return zeroAddress;
      return recoverAddress({ hash, signature: { r, s: bare, yParity: parity } }).catch(
        () => zeroAddress,
      );
    };
    const any = fc.tuple(
      anyHash,
      anyHash,
      fc.boolean(),
      fc.option(fc.tuple(fc.nat(64), fc.nat(255))),
    );
    const property = fc.asyncProperty(any, async ([key, digest, isCompact, damage]) => {
      const whole = await privateKeyToAccount(key).sign({ hash: digest });
      const bytes = hexToBytes(isCompact ? compactBytes(whole) : whole);
      if (damage !== null) bytes[damage[0] % bytes.length] = damage[1];
      const signature = toHex(bytes);
      const signer = await signerOf(digest, signature);
      expect(signer).toBe(await expected(digest, signature));
      if (damage === null) expect(signer).toBe(privateKeyToAccount(key).address);
      for (const other of [slice(signature, 1), `${signature}0000`] as const)
        expect(await signerOf(digest, other)).toBe(await expected(digest, other));
    });
    await fc.assert(property, { numRuns: 200 });
  });
  let signatures: Harness;
  beforeAll(async () => {
    signatures = await signatureHarness(attested.settlement.contract);
  });

  it.each(vectors("manifests").consents)(
    "an issuer's consent to $mode batch $batchNumber",
    async (vector) => {
      const { mode, batchNumber, vaultCount, content, manifest, assetsHash, digest } = vector;
      const harness = await signatureHarness(vectors("manifests").settlement.contract);
      const batch = [MODE[mode], BigInt(batchNumber), Number(vaultCount), content] as const;
      expect(await harness.read.issuerConsentDigest([...batch, manifest, assetsHash])).toBe(digest);
    },
  );

  it.each(vectors("typed-data").withdrawalLists)(
    "list of $vaults.length withdrawals",
    async (vector) => {
      const list = vector.vaults.map(({ vaultId, withdrawnBefore, quantity }) => ({
        ...{
          vaultId: BigInt(vaultId),
          withdrawnBefore: BigInt(withdrawnBefore),
          quantity: BigInt(quantity),
        },
      }));
      const args = [packedEntries(list), vector.recipient, BigInt(vector.deadline)] as const;
      expect(await signatures.read.withdrawalListDigest(args)).toBe(vector.digest);
    },
  );

  it.each(vectors("orders").vectors)("the order of vault $vaultId", async (vector) => {
    const { give, want, shares, taker, vaultId, withdrawnBefore, deadline } = orderOf(vector);
    // The contract counts shares in units of a quantum.
    for (const quantum of [1n, 4n]) {
      const packed = shares.map(({ to, amount }) =>
        concat([to, numberToHex(amount / quantum, { size: 8 })]),
      );
      const order = [taker, vaultId, withdrawnBefore, deadline] as const;
      const args = [give, want, concat(["0x", ...packed]), quantum, ...order] as const;
      expect(await signatures.read.orderDigest(args)).toBe(vector.digest);
    }
  });

  it.each(vectors("typed-data").validiumBatches)(
    "validium batch $batchNumber",
    async ({ digest, ...message }) => {
      expect(await signatures.read.validiumBatchDigest(batchArgs(message))).toBe(digest);
    },
  );

  it.each(vectors("typed-data").mirroredStates)(
    "mirrored state of $countRollup rollup batches",
    async (vector) => {
      const {
        sourceChainId,
        sourceContract,
        countValidium,
        countRollup,
        commitment,
        epoch,
        digest,
      } = vector;
      const counts = [BigInt(countValidium), BigInt(countRollup)] as const;
      const args = [
        BigInt(sourceChainId),
        sourceContract,
        ...counts,
        commitment,
        BigInt(epoch),
      ] as const;
      expect(await signatures.read.mirroredStateDigest(args)).toBe(digest);
    },
  );

  it("the settlement of both vector files is one", () => {
    expect(vectors("typed-data").domain.verifyingContract).toBe(attested.settlement.contract);
  });

  it("the committee", async () => {
    const { epoch, threshold, members, committeeHash } = attested;
    const head = [
      numberToHex(Number(threshold), { size: 1 }),
      numberToHex(members.length, { size: 1 }),
    ];
    expect(
      await signatures.read.hashCommittee([BigInt(epoch), concat([...head, ...members])]),
    ).toBe(committeeHash);
  });

  const check = (attestation: Hex) =>
    signatures.read.checkAttestation([
      attestation,
      attested.committeeHash,
      BigInt(attested.epoch),
      attested.digest,
    ]);

  it.each(attested.vectors)("an attestation of members $signers", async ({ attestation }) => {
    expect(await signatures.read.validiumBatchDigest(batchArgs(attested.message))).toBe(
      attested.digest,
    );
    await check(attestation);
  });

  it.each(attested.refused)("no attestation that has $name", async ({ attestation }) => {
    const faults = /AttestationMalformed|CommitteeMismatch/;
    await expect(check(attestation)).rejects.toThrow(faults);
  });

  const batchArgs = (message: Omit<(typeof attested)["message"], never>) =>
    [
      message.history,
      BigInt(message.batchNumber),
      message.batchRoot,
      Number(message.vaultCount),
      message.dataHash,
      BigInt(message.epoch),
    ] as const;
});

/** The harness at the address that the vectors' messages are for: its domain is then theirs. */
async function signatureHarness(address: Address) {
  const deployed = await viem.deployContract("SignatureHarness");
  const client = await viem.getPublicClient();
  const bytecode = (await client.getCode({ address: deployed.address })) ?? "0x";
  await (await viem.getTestClient()).setCode({ address, bytecode });
  return viem.getContractAt("SignatureHarness", address);
}
