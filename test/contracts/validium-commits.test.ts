import {
  concat,
  encodeFunctionData,
  type Hex,
  keccak256,
  size,
  slice,
  toHex,
  zeroAddress,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { hashTypedData } from "viem/utils";
import { beforeEach, describe, expect, it } from "vitest";
import { packedAssets } from "../../core/l1/arguments.ts";
import type { AssetId } from "../../core/ports.ts";
import { committeeHash } from "../../core/protocol/attestation.ts";
import { compareAssets } from "../../core/protocol/manifest.ts";
import {
  type ValidiumBatchMessage,
  validiumBatchTypedData,
} from "../../core/protocol/typed-data.ts";
import { commitRollup, committedEvent, entry, sealedRoot } from "./fixture/batches.ts";
import { attest, changeCommittee, signBatch } from "./fixture/committee.ts";
import type { Deployment, Member } from "./fixture/deployment.ts";
import {
  ascendingAccounts,
  CHANGE_DELAY,
  MODE,
  openChain,
  THRESHOLD,
} from "./fixture/deployment.ts";

const { fresh } = await openChain();
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

describe("validium commits", () => {
  let d: Deployment;
  let message: ValidiumBatchMessage;
  let assets: readonly AssetId[];
  const content = keccak256(toHex("content"));
  beforeEach(async () => {
    d = await fresh();
    assets = [d.assets.coin, d.assets.card].sort(compareAssets);
    const dataHash = keccak256(toHex("data"));
    const history = await d.state.read.history();
    const batchRoot = sealedRoot("validium", assets, content);
    message = { history, batchNumber: 0, batchRoot, vaultCount: 1_000, dataHash, epoch: 0n };
  });

  const write = async (
    attestation: Hex,
    change: Partial<Omit<ValidiumBatchMessage, "batchRoot">> & { content?: Hex; assets?: Hex } = {},
    account = d.actors.operator.account,
  ) => {
    const given = { ...message, content, assets: packedAssets(assets), ...change };
    const place = [await d.state.read.history(), BigInt(given.batchNumber)] as const;
    return d.state.write.commitValidiumBatch(
      [...place, given.content, given.vaultCount, given.dataHash, given.assets, attestation, "0x"],
      { account },
    );
  };
  const refuses = async (
    attestation: Hex,
    error: "AttestationMalformed" | "CommitteeMismatch",
    args: unknown[],
  ) => d.refuses(write(attestation), error, args as never);
  /** One entry for each member: its signature, or its address. */
  const parts = async (signers: readonly number[] = [0, 1, 2]) =>
    Promise.all(
      d.members.map(async (member, i) => {
        if (!signers.includes(i)) return unsigned(member.address);
        return signed(await signBatch(d, member, message));
      }),
    );
  const unsigned = (member: Hex) => `00${member.slice(2)}`;
  const signed = ({ r, vs }: { r: Hex; vs: Hex }) => `01${r.slice(2)}${vs.slice(2)}`;
  const join = (entries: readonly string[], threshold = 3, count = entries.length): Hex =>
    concat([toHex(threshold, { size: 1 }), toHex(count, { size: 1 }), `0x${entries.join("")}`]);
  const member = (index: number): Member => {
    const found = d.members[index];
    if (found === undefined) throw new Error(`no member ${index}`);
    return found;
  };

  it("takes a root that any three of the five have signed", async () => {
    const choices = [
      [0, 1, 2],
      [0, 2, 4],
      [2, 3, 4],
    ];
    for (const [batchNumber, signers] of choices.entries()) {
      const history = await d.state.read.history();
      const attestation = await attest(d, { ...message, history, batchNumber }, { signers });
      const { args } = await committedEvent(d, await write(attestation, { batchNumber }));
      expect(args).toMatchObject({
        mode: MODE.validium,
        batchNumber: BigInt(batchNumber),
        batchRoot: message.batchRoot,
      });
    }
    expect(await d.state.read.batchCounts()).toEqual([3n, 0n]);
  });

  it("knows the committee by the core's hash", async () => {
    const members = d.config.committee;
    expect(await d.state.read.committee()).toEqual([
      committeeHash(0n, { threshold: THRESHOLD, members }),
      0n,
    ]);
  });

  describe("refuses an attestation", () => {
    it("whose signatures stand in each other's place", async () => {
      const [a = "", b = "", c = "", ...others] = await parts();
      await refuses(join([b, a, c, ...others]), "CommitteeMismatch", [0n]);
      await refuses(join([a, c, b, ...others]), "CommitteeMismatch", [0n]);
    });

    it("with one member's signature twice", async () => {
      const [a = "", b = "", , ...others] = await parts();
      await refuses(join([a, b, b, ...others]), "CommitteeMismatch", [0n]);
      await refuses(
        join([a, b, unsigned(member(2).address), b, ...others.slice(1)]),
        "CommitteeMismatch",
        [0n],
      );
    });

    it("that signs as a member past the last", async () => {
      const [a = "", b = "", c = "", ...others] = await parts();
      await refuses(join([a, b, unsigned(member(2).address), ...others, c]), "CommitteeMismatch", [
        0n,
      ]);
    });

    it("with a signature of somebody else", async () => {
      const [foreign] = ascendingAccounts(1) as [Member];
      const [a = "", b = "", , ...others] = await parts();
      const forged = signed(await signBatch(d, foreign, message));
      await refuses(join([a, b, forged, ...others]), "CommitteeMismatch", [0n]);
    });

    it("with a member's signature in another member's name", async () => {
      const [a = "", b = "", , c = "", last = ""] = await parts([0, 1, 3]);
      await refuses(join([a, b, c, unsigned(member(3).address), last]), "CommitteeMismatch", [0n]);
      await write(join([a, b, unsigned(member(2).address), c, last]));
    });

    it("with the addresses of all members and no signature", async () => {
      const addresses = d.members.map(({ address }) => unsigned(address));
      for (const threshold of [0, 3]) {
        const error = threshold === 0 ? "CommitteeMismatch" : "AttestationMalformed";
        const attestation = join(addresses, threshold);
        const args = threshold === 0 ? 0n : BigInt(size(attestation));
        await refuses(attestation, error, [args]);
      }
    });

    it("with an entry that is neither a signature nor an address", async () => {
      const entries = await parts();
      for (const form of ["02", "03", "81", "ff"]) {
        for (const [i, entry] of entries.entries()) {
          const attestation = join(entries.with(i, `${form}${entry.slice(2)}`));
          await refuses(attestation, "AttestationMalformed", [BigInt(size(attestation))]);
        }
      }
    });

    it("in the high-s form of a signature, whose low-s form it takes", async () => {
      const epoch = 1n;
      const digest = hashTypedData(validiumBatchTypedData(d.settlement, { ...message, epoch }));
      const { account, r, parity } = keyThatSigns(BigInt(digest), HIGH_S);
      await changeCommittee(d, [account.address], 1);
      const attestation = (s: bigint, yParity: bigint): Hex => {
        const vs = toHex((yParity << 255n) | s, { size: 32 });
        return concat(["0x010101", r, vs]);
      };
      await refuses(attestation(HIGH_S, parity), "CommitteeMismatch", [epoch]);
      await write(attestation(ORDER - HIGH_S, 1n - parity));
    });

    it("that counts one signature twice, by an entry of form 2 in the length of two", async () => {
      const [a = "", b = "", ...others] = await parts([0, 1]);
      const double = `02${a.slice(2)}${"00".repeat(44)}`;
      const attestation = join([double, b, ...others]);
      await refuses(attestation, "AttestationMalformed", [BigInt(size(attestation))]);
    });

    it("of another epoch, chain or contract", async () => {
      const other = { ...d, settlement: { ...d.settlement, chainId: 31_338n } };
      const elsewhere = { ...d, settlement: { ...d.settlement, contract: d.tokens.coin.address } };
      await refuses(await attest(d, { ...message, epoch: 1n }), "CommitteeMismatch", [0n]);
      await refuses(await attest(other, message), "CommitteeMismatch", [0n]);
      await refuses(await attest(elsewhere, message), "CommitteeMismatch", [0n]);
    });

    it("of another batch number, root, count or data", async () => {
      const otherHash = keccak256(toHex("other"));
      const others = [
        { batchNumber: 1 },
        { batchRoot: otherHash },
        { vaultCount: 999 },
        { dataHash: otherHash },
      ];
      for (const other of others) {
        await refuses(await attest(d, { ...message, ...other }), "CommitteeMismatch", [0n]);
      }
    });

    it("for another history, though that has as many batches", async () => {
      const history = keccak256(toHex("other"));
      await refuses(await attest(d, { ...message, history }), "CommitteeMismatch", [0n]);
      const early = await attest(d, message);
      await commitRollup(d, [entry(d.assets.coin, d.actors.owner.account.address, "", 5n)]);
      await refuses(early, "CommitteeMismatch", [0n]);
      await write(await attest(d, { ...message, history: await d.state.read.history() }));
    });

    it("of another threshold or of other members", async () => {
      await refuses(
        await attest(d, message, { signers: [0, 1], threshold: 2 }),
        "CommitteeMismatch",
        [0n],
      );
      await refuses(
        await attest(d, message, { signers: [0, 1, 2, 3], threshold: 4 }),
        "CommitteeMismatch",
        [0n],
      );
      const impostors = { ...d, members: ascendingAccounts(5) };
      await refuses(await attest(impostors, message), "CommitteeMismatch", [0n]);
      const fewer = { ...d, members: d.members.slice(0, 4) };
      await refuses(await attest(fewer, message), "CommitteeMismatch", [0n]);
    });
  });

  it("refuses a batch that no honest member would sign, even with three signatures", async () => {
    const attestation = await attest(d, message);
    for (const vaultCount of [0, 2 ** 20 + 1, 2 ** 32 - 1]) {
      await d.refuses(write(attestation, { vaultCount }), "VaultCountInvalid", [vaultCount]);
    }
    const largest = { vaultCount: 2 ** 20 };
    await write(await attest(d, { ...message, ...largest }), largest);
  });

  it("takes a signed batch only from the operator, and only as the next one", async () => {
    const attestation = await attest(d, message);
    await d.refuses(
      write(attestation, {}, d.actors.stranger.account),
      "AccessControlUnauthorizedAccount",
    );
    await write(attestation);
    await d.refuses(write(attestation), "BatchNumberMismatch", [1n, 0n]);
    const gap = { batchNumber: 2 };
    await d.refuses(write(await attest(d, { ...message, ...gap }), gap), "BatchNumberMismatch", [
      1n,
      2n,
    ]);
  });

  it("takes a manifest of registered assets only, strictly ascending and whole", async () => {
    const [first, second] = assets as [AssetId, AssetId];
    const unknown = { chainId: first.chainId + 1n, assetType: first.assetType };
    const many = Array.from({ length: 256 }, (_, i) => ({
      chainId: BigInt(i),
      assetType: first.assetType,
    }));
    const whole = packedAssets(assets);
    const refused = [
      ["ManifestInvalid", whole.slice(0, -2) as Hex, [1n]],
      ["ManifestInvalid", `${whole}00`, [2n]],
      ["ManifestInvalid", packedAssets([second, first]), [1n]],
      ["ManifestInvalid", packedAssets([first, first]), [1n]],
      ["ManifestInvalid", packedAssets(many), [255n]],
      [
        "AssetNotRegistered",
        packedAssets([...assets, unknown]),
        [unknown.chainId, BigInt(unknown.assetType)],
      ],
    ] as const;
    for (const [error, given, args] of refused) {
      const call = write(await attest(d, message), { assets: given });
      await d.refuses(call, error, args as never);
    }
  });

  it("takes no other manifest than the one that three have signed", async () => {
    const attestation = await attest(d, message);
    for (const other of [
      assets.slice(1),
      assets.slice(0, 1),
      [],
      [...assets, d.assets.item].sort(compareAssets),
    ]) {
      const call = write(attestation, { assets: packedAssets(other) });
      await d.refuses(call, "CommitteeMismatch");
    }
    await write(attestation);
  });

  it("may come from a contract: a signed root is no rollup data", async () => {
    const multisig = await d.viem.deployContract("ContractOperator", [zeroAddress, "0x"]);
    await d.state.write.scheduleOperator([multisig.address], d.by("admin"));
    await d.time.increase(CHANGE_DELAY);
    await d.state.write.activateOperator([multisig.address]);
    const { vaultCount, dataHash } = message;
    const place = [await d.state.read.history(), 0n] as const;
    const payload = encodeFunctionData({
      abi: d.state.abi,
      functionName: "commitValidiumBatch",
      args: [
        ...place,
        content,
        vaultCount,
        dataHash,
        packedAssets(assets),
        await attest(d, message),
        "0x",
      ],
    });
    await multisig.write.forward([d.state.address, payload]);
    expect(await d.state.read.batchCounts()).toEqual([1n, 0n]);
  });
});

/** The smallest s above half of the order; it still fits the 255 bits of the compact form. */
const HIGH_S = (ORDER >> 1n) + 1n;

/**
 * A key whose signature over the digest has exactly this s: with a nonce k, `s = (digest + r * key)
 * / k`, solved for the key.
 */
function keyThatSigns(digest: bigint, s: bigint) {
  const nonce = BigInt(keccak256(toHex("a nonce")));
  const point = privateKeyToAccount(toHex(nonce, { size: 32 })).publicKey;
  const r = slice(point, 1, 33);
  const key = (modulo(s * nonce - digest) * inverse(BigInt(r))) % ORDER;
  return {
    account: privateKeyToAccount(toHex(key, { size: 32 })),
    r,
    parity: BigInt(slice(point, 64)) & 1n,
  };
}

/** Modulo the prime order: a^(order - 2). */
function inverse(a: bigint): bigint {
  let result = 1n;
  let power = a;
  for (let rest = ORDER - 2n; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * power) % ORDER;
    power = (power * power) % ORDER;
  }
  return result;
}

function modulo(a: bigint): bigint {
  return ((a % ORDER) + ORDER) % ORDER;
}
