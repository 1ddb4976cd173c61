import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Level } from "level";
import { MemoryLevel } from "memory-level";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { collectAttestations, type MemberClient } from "../../core/committee/index.ts";
import { CommitteeMember } from "../../core/committee/member.ts";
import type { SealedBatch } from "../../core/ports.ts";
import { bytesToHex } from "../../core/protocol/hex.ts";
import { COMMITTEE, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { readAttestation } from "../core/protocol/read-attestation.ts";
import {
  hexOf,
  l1,
  moveHistory,
  newMember,
  onL1,
  pointOf,
  sign,
  take,
} from "./committee-fixture.ts";
import { at } from "./fixture.ts";
import {
  decimalOf,
  entry,
  NEW_TYPE,
  POISONS,
  poisonedWords,
  sealed,
  sealedWords,
  TENS,
} from "./signed-batches.ts";

beforeEach(() => {
  onL1.length = 0;
});

describe("a committee member", () => {
  const first = sealed(0, [
    entry("erc721", "1"),
    entry("erc20", "", 7n),
    entry("erc1155", "5", 3n),
  ]);

  test("stores the data that it signs, and signs the same again", async () => {
    const member = await newMember();
    const signature = await sign(member, first);
    expect(await sign(member, first)).toBe(signature);
    expect(await hexOf(member, 0)).toBe(bytesToHex(first.data));
    expect(await member.data("validium", 1)).toBeNull();
  });

  test.each<[string, string, SealedBatch]>([
    ["a root that the data does not make", "root", { ...first, batchRoot: `0x${"11".repeat(32)}` }],
    ["a count that the data does not have", "root", { ...first, vaultCount: 4 }],
    ["a hash of other data", "data_hash", { ...first, dataHash: `0x${"11".repeat(32)}` }],
    ["a rollup batch", "mode", { ...first, mode: "zk-rollup" }],
    ["a batch that L1 does not take next", "ahead", sealed(1, [entry("erc20")])],
    [
      "a token twice in one batch",
      "duplicate",
      sealed(0, [entry("erc721", "1"), entry("erc721", "1")]),
    ],
    [
      "an unregistered asset",
      "unregistered",
      sealed(0, [{ ...entry("erc20"), assetType: `0x${"0f".repeat(32)}` }]),
    ],
    [
      "an asset whose registration is not final",
      "unregistered",
      sealed(0, [{ ...entry("erc20"), assetType: NEW_TYPE }]),
    ],
    ["amount 2 of an ERC-721", "malformed", sealed(0, [entry("erc721", "1", 2n)])],
    ...POISONS.map(([name, tag, payload]) => {
      const batch = sealedWords(0, poisonedWords([entry("erc721", "1")], tag, payload));
      return [name, "malformed", batch] as [string, string, SealedBatch];
    }),
    [
      "an index without an asset",
      "malformed",
      sealedWords(0, poisonedWords([entry("erc721", "1")], 0x20, 7n, 1)),
    ],
    [
      "more of an ERC-20 than its cap",
      "cap",
      sealed(0, [entry("erc20", "", 600n), entry("erc20", "", 401n)]),
    ],
    ["an ERC-20 with a minting blob", "malformed", sealed(0, [entry("erc20", "1")])],
  ])("refuses %s", async (_, reason, batch) => {
    const member = await newMember();
    await expect(sign(member, batch)).rejects.toMatchObject({ name: "Refusal", reason });
    expect(await member.data("validium", batch.batchNumber)).toBeNull();
    // Nothing is left of the refused one.
    await sign(member, first);
  });

  test("signs after batches that it has signed and L1 does not have yet, and after no others", async () => {
    const member = await newMember();
    const behind = (batch: SealedBatch, ...before: SealedBatch[]) =>
      member.sign(batch, { ...pointOf([...onL1, ...before]), epoch: 0n });
    const [second, third] = [sealed(1, [entry("erc721", "2")]), sealed(2, [entry("erc721", "3")])];
    await sign(member, first);
    // The number is wrong for the history, or the history is not the one that it has signed.
    await expect(sign(member, second)).rejects.toMatchObject({ reason: "ahead" });
    await expect(behind(third, first)).rejects.toMatchObject({ reason: "ahead" });
    const other = sealed(0, [entry("erc721", "7")]);
    await expect(behind(second, other)).rejects.toMatchObject({ reason: "behind" });
    expect(await behind(second, first)).toMatch(/^0x/);
    await expect(behind(sealed(2, [entry("erc721", "1")]), first, second)).rejects.toMatchObject({
      reason: "duplicate",
    });
    await expect(behind(sealed(1, [entry("erc721", "9")]), first)).rejects.toMatchObject({
      reason: "equivocation",
    });
    expect(await behind(third, first, second)).toMatch(/^0x/);
    onL1.push(first, second);
    expect(await behind(third)).toMatch(/^0x/);
    // L1 goes on without the third: what it held is free again.
    moveHistory();
    expect(await behind(sealed(2, [entry("erc721", "3"), entry("erc721", "4")]))).toMatch(/^0x/);
  });

  test("stores no more than 16 batches that L1 does not have", async () => {
    const member = await newMember();
    const ahead: SealedBatch[] = [];
    for (let i = 0; i <= 16; i++) {
      const batch = sealed(i, [entry("erc721", `${i}`)]);
      const signature = member.sign(batch, { ...pointOf(ahead), epoch: 0n });
      if (i < 16) await signature;
      else await expect(signature).rejects.toMatchObject({ reason: "behind" });
      ahead.push(batch);
    }
    expect(await member.nextBatch()).toBe(16);
  });

  test("gets its missed batches in order", async () => {
    const member = await newMember();
    const second = sealed(1, [entry("erc721", "2")]);
    onL1.push(first, second);
    await expect(sign(member, sealed(2, [entry("erc20")]))).rejects.toMatchObject({
      reason: "gap",
    });
    for (const batch of [first, second, sealed(2, [entry("erc20")])])
      expect(await sign(member, batch)).toMatch(/^0x/);
  });

  test("refuses a token of an earlier batch, and another minting blob for a known ERC-1155 id", async () => {
    const member = await newMember();
    await take(member, first);
    const reason = "duplicate";
    await expect(sign(member, sealed(1, [entry("erc721", "1")]))).rejects.toMatchObject({ reason });
    const id = decimalOf("potion");
    await take(member, sealed(1, [entry("erc1155", "potion"), entry("erc1155", "5", 9n)]));
    await expect(sign(member, sealed(2, [entry("erc1155", id)]))).rejects.toMatchObject({ reason });
  });

  test("counts all batches against a token's cap", async () => {
    const member = await newMember();
    await take(member, sealed(0, [entry("erc20", "", 600n)]));
    await expect(sign(member, sealed(1, [entry("erc20", "", 401n)]))).rejects.toMatchObject({
      reason: "cap",
    });
    await sign(member, sealed(1, [entry("erc20", "", 400n)]));
  });

  test("counts all quanta of a token against its cap", async () => {
    const member = await newMember();
    const tens = (amount: bigint) => ({ ...entry("erc20", "", amount), assetType: TENS });
    await take(member, sealed(0, [entry("erc20", "", 600n), tens(30n)]));
    for (const above of [entry("erc20", "", 101n), tens(11n)]) {
      await expect(sign(member, sealed(1, [above]))).rejects.toMatchObject({ reason: "cap" });
    }
    await sign(member, sealed(1, [tens(10n)]));
  });

  test("handles concurrent requests one after the other", async () => {
    const member = await newMember();
    onL1.push(...[0, 1, 2, 3].map((number) => sealed(number, [entry("erc721", `${number}`)])));
    await Promise.all(onL1.map((batch) => sign(member, batch)));
    const rivals = [sealed(4, [entry("erc721", "a")]), sealed(4, [entry("erc721", "b")])];
    const outcomes = await Promise.allSettled(rivals.map((batch) => sign(member, batch)));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  test("accepts another batch for a number that L1's history skipped, and frees the tokens", async () => {
    const member = await newMember();
    await sign(member, first);
    const rival = sealed(0, [entry("erc721", "1"), entry("erc20", "", 1_000n)]);
    await expect(sign(member, rival)).rejects.toMatchObject({ reason: "equivocation" });
    moveHistory();
    await sign(member, rival);
    expect(await hexOf(member, 0)).toBe(bytesToHex(rival.data));
    await expect(sign(member, first)).rejects.toMatchObject({ reason: "equivocation" });
    expect(await member.nextBatch()).toBe(1);
    // A reorganisation may bring L1 back to the first one: its data is there.
    expect(bytesToHex((await member.archive.dataOf(first.dataHash)) ?? new Uint8Array())).toBe(
      bytesToHex(first.data),
    );
    // A batch that L1 has taken stays.
    onL1.push(rival);
    await expect(sign(member, first)).rejects.toMatchObject({ reason: "equivocation" });
  });

  test("frees the ERC-1155 ids of a batch that L1's history skipped, unless another batch has them", async () => {
    const member = await newMember();
    await take(member, sealed(0, [entry("erc1155", "a knight")]));
    await sign(
      member,
      sealed(1, [entry("erc1155", "a hero"), entry("erc1155", "a knight"), entry("erc1155", "7")]),
    );
    moveHistory();
    const conflict = sealed(1, [entry("erc1155", decimalOf("a knight"))]);
    await expect(sign(member, conflict)).rejects.toMatchObject({ reason: "duplicate" });
    await take(member, sealed(1, [entry("erc1155", decimalOf("a hero")), entry("erc1155", "8")]));
    await expect(sign(member, sealed(2, [entry("erc1155", "a hero")]))).rejects.toMatchObject({
      reason: "duplicate",
    });
    await sign(member, sealed(2, [entry("erc1155", "a knight"), entry("erc1155", "7")]));
  });

  describe("with an operator that sees another history", () => {
    const request = (batch: SealedBatch, commits: readonly SealedBatch[]) => ({
      ...pointOf(commits),
      epoch: 0n,
      batch,
    });

    test("reports its node's lag after waiting for it", async () => {
      const member = await newMember();
      await take(member, first);
      const second = sealed(1, [entry("erc721", "2")]);
      const { batch, ...ahead } = request(sealed(2, [entry("erc20")]), [first, second]);
      await expect(member.sign(batch, ahead)).rejects.toMatchObject({ reason: "behind" });
      expect(await member.nextBatch()).toBe(1);

      const patient = await CommitteeMember.open({
        account: at(COMMITTEE, 1),
        store: new MemoryLevel(),
        l1,
      });
      await sign(patient, first);
      const signature = patient.sign(second, { ...pointOf([first]), epoch: 0n });
      expect(await signature).toMatch(/^0x/);
      const waiting = patient.sign(sealed(2, [entry("erc20")]), ahead);
      await expect.poll(() => patient.nextBatch()).toBe(2);
      onL1.push(second);
      expect(await waiting).toMatch(/^0x/);
    });

    test("reports the divergence at once, and stores nothing", async () => {
      const member = await newMember();
      await take(member, first);
      const other = sealed(0, [entry("erc721", "7")]);
      for (const commits of [[other], []]) {
        const { batch, ...diverged } = request(
          sealed(commits.length, [entry("erc721", "2")]),
          commits,
        );
        await expect(member.sign(batch, diverged)).rejects.toMatchObject({ reason: "diverged" });
      }
      expect(await member.data("validium", 1)).toBeNull();
    });
  });

  test("checks the next batch against the batches on L1, not against one that it signed in their place", async () => {
    const member = await newMember();
    await sign(member, first);
    // The others have signed another one, and L1 has taken that.
    const taken = sealed(0, [entry("erc721", "7")]);
    onL1.push(taken);
    const repeats = sealed(1, [entry("erc721", "7")]);
    await expect(sign(member, repeats)).rejects.toMatchObject({ reason: "gap" });
    expect(await member.nextBatch()).toBe(0);
    await sign(member, taken);
    await expect(sign(member, repeats)).rejects.toMatchObject({ reason: "duplicate" });
    await sign(member, sealed(1, [entry("erc721", "1")]));
  });

  describe("with a store on disk", () => {
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "mintmark-member-"));
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    test("never signs two roots for one number, also after a restart", async () => {
      const rival = sealed(0, [entry("erc721", "another")]);
      const before = await newMember(0, new Level<Uint8Array, Uint8Array>(folder));
      await sign(before, first);
      await expect(sign(before, rival)).rejects.toMatchObject({ reason: "equivocation" });
      await before.close();

      const after = await newMember(0, new Level<Uint8Array, Uint8Array>(folder));
      await expect(sign(after, rival)).rejects.toMatchObject({ reason: "equivocation" });
      // Under a new epoch neither: the batch is what it was.
      await expect(sign(after, rival, 1n)).rejects.toMatchObject({ reason: "equivocation" });
      expect(await hexOf(after, 0)).toBe(bytesToHex(first.data));
      await sign(after, first, 1n);
      await after.close();
    });
  });
});

describe("the collector", () => {
  const members: CommitteeMember[] = [];
  const stopped: (() => void)[] = [];
  afterEach(async () => {
    for (const stop of stopped.splice(0)) stop();
    for (const member of members.splice(0)) await member.close();
  });

  type Fault = (member: CommitteeMember) => MemberClient | Promise<MemberClient>;
  const faults: Record<string, Fault> = {
    dead: ({ address }) => ({
      address,
      sign: () => Promise.reject(new Error("connection refused")),
    }),
    slow: ({ address }) => ({
      address,
      sign: () => new Promise((resolve) => stopped.push(() => resolve("0x"))),
    }),
    "lying about the root": (member) => ({
      address: member.address,
      sign: (batch, terms) =>
        member.sign(sealed(batch.batchNumber, [entry("erc721", "666")]), terms),
    }),
    "signing for another epoch": (member) => ({
      address: member.address,
      sign: (batch, terms) => member.sign(batch, { ...terms, epoch: terms.epoch + 1n }),
    }),
    "talking nonsense": ({ address }) => ({ address, sign: async () => "0x1234" }),
    impersonated: async ({ address }) => {
      const other = await newMember(0);
      members.push(other);
      return { address, sign: (batch, terms) => other.sign(batch, terms) };
    },
  };

  async function collector(
    faulty: readonly Fault[],
    options: { batches?: readonly SealedBatch[]; timeoutMs?: number } = {},
  ) {
    // Faulty ones at the end: the impersonator uses the first member's key.
    const clients: MemberClient[] = [];
    for (const index of COMMITTEE.keys()) {
      const member = await newMember(index);
      members.push(member);
      clients.push((await faulty[COMMITTEE.length - 1 - index]?.(member)) ?? member);
    }
    const batches = options.batches ?? [];
    return {
      clients,
      committee: collectAttestations({
        members: clients,
        threshold: THRESHOLD,
        l1,
        ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
        earlierBatch: async (number) => at(batches, number),
      }),
    };
  }

  const batch = sealed(0, [entry("erc721", "1"), entry("erc20", "", 7n)]);

  test("takes three of five, in order of their addresses", async () => {
    const { committee } = await collector([]);
    const attestation = readAttestation(await committee.attest(batch, pointOf()));
    expect(attestation.threshold).toBe(3);
    const addresses = COMMITTEE.map(({ address }) => address.toLowerCase()).toSorted();
    expect(
      attestation.members.map((member, i) => ("address" in member ? member.address : addresses[i])),
    ).toEqual(addresses);
    expect(attestation.members.filter((member) => "vs" in member)).toHaveLength(3);
  });

  const names = Object.keys(faults);
  test.each(names.flatMap((a, i) => names.slice(i).map((b) => [a, b] as const)))(
    "survives one member %s and one %s",
    async (a, b) => {
      const { committee } = await collector(
        [at([faults[a]], 0), at([faults[b]], 0)].filter((it) => it !== undefined),
      );
      const attestation = readAttestation(await committee.attest(batch, pointOf()));
      expect(attestation.members.filter((member) => "vs" in member)).toHaveLength(3);
    },
  );

  test("with three at fault reports each fault", async () => {
    const { dead, slow, "talking nonsense": nonsense } = faults;
    const three = [dead, slow, nonsense].filter((it) => it !== undefined);
    const { committee, clients } = await collector(three, { timeoutMs: 300 });
    const failure = await committee.attest(batch, pointOf()).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "l1_failed" });
    for (const { address } of clients.slice(2)) expect(String(failure)).toContain(address);
    expect(String(failure)).toContain("connection refused");
    expect(String(failure)).toContain("300 ms");
  });

  test("brings a member that missed batches up to date, so that it counts again", async () => {
    const batches = [0, 1, 2].map((number) => sealed(number, [entry("erc721", `${number}`)]));
    const { committee } = await collector([], { batches });
    const late = at(members, 4);
    // The first two batches go to others only.
    for (const each of batches.slice(0, 2)) {
      for (const member of members.slice(0, 2)) await sign(member, each);
      onL1.push(each);
    }
    await committee.attest(at(batches, 2), pointOf());
    await expect.poll(() => hexOf(late, 2)).toBe(bytesToHex(at(batches, 2).data));
    expect(await hexOf(late, 0)).toBe(bytesToHex(at(batches, 0).data));
    expect(await late.nextBatch()).toBe(3);
  });

  test("reports each member's standing", async () => {
    const { dead } = faults;
    const { committee, clients } = await collector([dead].filter((it) => it !== undefined));
    expect(committee.standings().map(({ state }) => state)).toEqual(Array(5).fill("idle"));
    await committee.attest(batch, pointOf());
    const stateOf = () =>
      committee.standings().map(({ address, state, failure }) => ({ address, state, failure }));
    await expect.poll(() => stateOf().filter(({ state }) => state === "signed")).toHaveLength(4);
    const fault = {
      address: at(clients, 4).address,
      state: "failed",
      failure: "connection refused",
    };
    expect(stateOf().find(({ state }) => state === "failed")).toEqual(fault);
  });

  test("reports members outside the contract's committee before any request", async () => {
    const { clients } = await collector([]);
    const four = collectAttestations({ members: clients.slice(1), threshold: THRESHOLD, l1 });
    await expect(four.requireInForce()).rejects.toMatchObject({
      code: "validation_failed",
      message: expect.stringContaining("CommitteeChanged"),
    });
    await expect(four.attest(batch, pointOf())).rejects.toMatchObject({
      code: "validation_failed",
    });
    const two = collectAttestations({ members: clients, threshold: 2, l1 });
    await expect(two.requireInForce()).rejects.toThrow("is not 2 of");
    await collectAttestations({ members: clients, threshold: THRESHOLD, l1 }).requireInForce();
  });

  test("stops asking on an abort", async () => {
    const { slow } = faults;
    const five = Array.from({ length: 5 }, () => slow).filter((it) => it !== undefined);
    const { committee } = await collector(five);
    const signal = AbortSignal.abort(new Error("shutting down"));
    await expect(committee.attest(batch, pointOf(), { signal })).rejects.toThrow("shutting down");
  });
});
