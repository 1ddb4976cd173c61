import { numberToHex } from "viem";
import { describe, expect, it, vi } from "vitest";
import type { ListedWithdrawal } from "../../../core/index.ts";
import { type Hash, type Hex, WITHDRAWAL_EVENTS } from "../../../core/model.ts";
import { compactSignature } from "../../../core/protocol/signature.ts";
import { cancellationId, withdrawalListDigest } from "../../../core/protocol/typed-data.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import type { Fixture } from "./fixture.ts";
import {
  all,
  fixture,
  hashOf,
  mintOf,
  newTenant,
  OWNERS,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import {
  committed,
  HOME,
  ownerAddress,
  signed,
  signedList,
  stranger,
  withdrawn,
} from "./l1-fixture.ts";

/**
 * The first user's vaults: 0 holds 100 units, 1 to 3 one token each; 4 is the second user's. All
 * are sealed but 5.
 */
async function holdings(options: Parameters<typeof fixture>[0] = {}): Promise<Fixture> {
  const made = await fixture(options);
  const { engine, tenant, assets } = made;
  const swords = [1, 2, 3].map((id) => mintOf(assets.erc721, id));
  await engine.mint(
    tenant.principal,
    requestOf(tenant.users[0], mintOf(assets.erc20, "", 100), ...swords),
  );
  await engine.mint(tenant.principal, requestOf(tenant.users[1], mintOf(assets.erc721, 4)));
  await engine.operator.seal("validium");
  return made;
}

const COINS = { vaultId: 0n, withdrawnBefore: 0n, quantity: 30n };

/** The status of each vault's withdrawal, or why it was not accepted. */
function outcomes(listed: readonly ListedWithdrawal[]): string[] {
  return listed.map(({ withdrawal, error }) => withdrawal?.status ?? error?.code ?? "");
}

function idsOf(listed: readonly ListedWithdrawal[]) {
  return listed.map(({ withdrawal }) => withdrawal?.withdrawalId);
}

describe("a list that its owner signed once", () => {
  it("reserves each of its vaults, and is offered to the settlement layer with the whole list", async () => {
    const made = await holdings();
    const { engine, tenant } = made;
    await using _ = engine;
    const told: string[] = [];
    engine.events.on(WITHDRAWAL_EVENTS, ({ event: { type, data } }) =>
      told.push(`${data.vaultId} ${type}`),
    );
    const list = await signedList(made, [COINS, 1n, 3n]);
    const accepted = await engine.withdrawals.request(tenant.principal, list);
    expect(outcomes(accepted)).toEqual(["accepted", "accepted", "accepted"]);
    expect(accepted[0]).toMatchObject({
      vaultId: 0n,
      withdrawal: { quantity: 30n, recipient: ownerAddress },
    });
    // An event has its user's id, which is read while the request is answered.
    await vi.waitFor(() =>
      expect(told).toEqual([
        "0 withdrawal.accepted",
        "1 withdrawal.accepted",
        "3 withdrawal.accepted",
      ]),
    );
    expect(await engine.vaults.get(tenant.applicationId, 0n)).toMatchObject({
      availableBalance: 70n,
    });
    const pending = await all(engine.operator.pendingWithdrawals(HOME));
    expect(new Set(pending.map(({ digest }) => digest)).size).toBe(1);
    for (const { authorization } of pending) {
      expect(authorization).toMatchObject({ deadline: list.deadline, signature: list.signature });
      expect(authorization.list).toMatchObject(list.vaults);
    }
    expect((await engine.withdrawals.list(tenant.applicationId)).data).toHaveLength(3);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("takes what it can of its vaults, says why of the others, and tries these again when it is repeated", async () => {
    const made = await holdings();
    const { engine, tenant, assets } = made;
    await using _ = engine;
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 5)));
    const single = await withdrawOne(
      engine,
      tenant.principal,
      await signed(made, 1n, { vaultId: 3n }),
    );
    const tooMuch = { ...COINS, quantity: 101n };
    const unsealed = 1n << 20n;
    const later = { vaultId: 2n, withdrawnBefore: 1n, quantity: 1n };
    const list = await signedList(made, [1n, tooMuch, 3n, 77n, unsealed, later]);
    const first = await engine.withdrawals.request(tenant.principal, list);
    const refused = ["insufficient_balance", "withdrawal_pending", "vault_not_found"];
    expect(outcomes(first)).toEqual([
      "accepted",
      ...refused,
      "proof_not_ready",
      "signature_invalid",
    ]);

    await engine.operator.seal("validium");
    await engine.operator.recordWithdrawalFailed(single.withdrawalId, "gone", single.deadline + 1n);
    const again = await engine.withdrawals.request(tenant.principal, list);
    const now = [
      "insufficient_balance",
      "accepted",
      "vault_not_found",
      "accepted",
      "signature_invalid",
    ];
    expect(outcomes(again)).toEqual(["accepted", ...now]);
    expect(idsOf(again)[0]).toBe(idsOf(first)[0]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("answers the same withdrawals at any time: at once, when they failed, after its deadline, after a restart", async () => {
    const made = await holdings();
    const { engine, tenant, clock, database } = made;
    const list = await signedList(made, [1n, 2n]);
    const request = () => engine.withdrawals.request(tenant.principal, list);
    const [one, two] = await Promise.all([request(), request()]);
    expect(two).toEqual(one.map((each) => ({ ...each, repeated: true })));
    const entries = (await engine.operator.verify()).journalEntries;
    const [id] = idsOf(one);
    await engine.operator.recordWithdrawalFailed(id ?? "", "expired", list.deadline + 1n);
    clock.now += 7_200_000;
    expect(outcomes(await request())).toEqual(["failed", "accepted"]);
    expect((await engine.operator.verify()).journalEntries).toBe(entries + 1);
    const expired = await signedList(
      { engine, clock: { ...clock, now: clock.now - 7_200_000 } as never },
      [3n],
    );
    expect((await refusal(engine.withdrawals.request(tenant.principal, expired))).code).toBe(
      "deadline_invalid",
    );
    await engine.close();
    await using reopened = await openTest(database, { clock: clock.read });
    const principal = await reopened.keys.authenticate(tenant.token);
    expect(idsOf(await reopened.withdrawals.request(principal, list))).toEqual(idsOf(one));
    expect((await reopened.operator.verify()).problems).toEqual([]);
  });

  it("is refused as a whole when it is not one owner's, or badly signed, and changes nothing", async () => {
    const made = await holdings();
    const { engine, tenant, assets } = made;
    await using _ = engine;
    const entries = (await engine.operator.verify()).journalEntries;
    const good = await signedList(made, [1n, 2n]);
    const codeOf = async (change: object, principal = tenant.principal) =>
      (await refusal(engine.withdrawals.request(principal, { ...good, ...change }))).code;
    expect(await codeOf(await signedList(made, [1n, 4n]))).toBe("validation_failed");
    expect(await codeOf(await signedList(made, [1n, 1n]))).toBe("validation_failed");
    expect(await codeOf({ vaults: [] })).toBe("validation_failed");
    const many = Array.from({ length: 257 }, (_, i) => ({
      vaultId: BigInt(i),
      withdrawnBefore: 0n,
      quantity: 1n,
    }));
    expect(await codeOf({ vaults: many })).toBe("validation_failed");
    for (const wrong of [
      { quantity: 0n },
      { quantity: 1 },
      { withdrawnBefore: -1n },
      { vaultId: "1" },
    ]) {
      expect(await codeOf({ vaults: [{ ...good.vaults[0], ...wrong }] })).toMatch(
        /validation_failed|vault_not_found/,
      );
    }
    expect(await codeOf({ deadline: good.deadline + 1n })).toBe("signature_invalid");
    expect(await codeOf({ recipient: stranger })).toBe("signature_invalid");
    expect(await codeOf({ vaults: [...good.vaults].reverse() })).toBe("signature_invalid");
    expect(await codeOf(await signedList(made, [1n], { signer: OWNERS[1] }))).toBe(
      "signature_invalid",
    );
    expect(await codeOf(await signedList(made, [1n], { seconds: 31 * 86_400 }))).toBe(
      "deadline_invalid",
    );
    expect(await codeOf(await signedList(made, [88n]))).toBe("vault_not_found");
    const other = await newTenant(engine, Object.values(assets));
    expect(await codeOf({}, other.principal)).toBe("vault_not_found");
    const reader = { ...tenant.principal, scopes: ["read"] } as typeof tenant.principal;
    expect(await codeOf({}, reader)).toBe("scope_missing");
    expect((await engine.operator.verify()).journalEntries - entries).toBeLessThan(20);
    expect((await engine.withdrawals.list(tenant.applicationId)).data).toEqual([]);
  });

  it("shows each application its own vaults of a list, and no other's", async () => {
    const made = await holdings();
    const { engine, tenant, assets } = made;
    await using _ = engine;
    const other = await newTenant(engine, Object.values(assets));
    await engine.mint(other.principal, requestOf(other.users[0], mintOf(assets.erc721, 9)));
    await engine.operator.seal("validium");
    const list = await signedList(made, [1n, 1n << 20n]);
    const ours = await engine.withdrawals.request(tenant.principal, list);
    expect(outcomes(ours)).toEqual(["accepted", "vault_not_found"]);
    const theirs = await engine.withdrawals.request(other.principal, list);
    expect(outcomes(theirs)).toEqual(["vault_not_found", "accepted"]);
    expect(idsOf(await engine.withdrawals.request(tenant.principal, list))).toEqual(idsOf(ours));
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("settles vault by vault; its owner's cancellation fails what is left, until a reorganisation takes it back", async () => {
    const made = await holdings();
    const { engine, tenant } = made;
    await using _ = engine;
    const list = await signedList(made, [COINS, 1n, 2n]);
    const request = () => engine.withdrawals.request(tenant.principal, list);
    await request();
    const digest = withdrawalListDigest(engine.settlement, { ...list, recipient: ownerAddress });
    const cancel = {
      type: "authorizationCancelled",
      id: digest,
      txHash: hashOf(9),
      logIndex: 0,
    } as const;
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 7n)], 7n);
    await engine.operator.recordEvents(HOME, [withdrawn(0n, 30n, 30n, ownerAddress, 8n)], 8n);
    await engine.operator.recordEvents(
      HOME,
      [{ ...cancel, blockNumber: 9n, signer: stranger }],
      9n,
    );
    expect(outcomes(await request())).toEqual(["settled", "accepted", "accepted"]);
    await engine.operator.recordEvents(
      HOME,
      [{ ...cancel, blockNumber: 10n, signer: ownerAddress }],
      10n,
    );
    expect(outcomes(await request())).toEqual(["settled", "failed", "failed"]);
    expect((await engine.operator.verify()).problems).toEqual([]);

    await engine.operator.recordReorg(HOME, 10n);
    expect(outcomes(await request())).toEqual(["settled", "accepted", "accepted"]);
    expect((await engine.operator.verify()).problems).toEqual([]);
    await engine.operator.recordEvents(HOME, [withdrawn(2n, 1n, 1n, ownerAddress, 11n)], 11n);
    await engine.operator.recordFinalized(HOME, 11n);
    expect(outcomes(await request())).toEqual(["finalized", "accepted", "finalized"]);
    expect(await all(engine.operator.pendingWithdrawals(HOME))).toHaveLength(1);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

describe("what an owner has cancelled on L1", () => {
  const at = { txHash: hashOf(9), blockNumber: 9n, logIndex: 0 } as const;

  it("is refused from then on: a list, or a vault in every list, until a reorganisation takes it back", async () => {
    const made = await holdings();
    const { engine, tenant } = made;
    await using _ = engine;
    const list = await signedList(made, [1n, 2n]);
    const id = withdrawalListDigest(engine.settlement, { ...list, recipient: ownerAddress });
    const tell = (logIndex: number, id: Hash, signer = ownerAddress) =>
      ({ type: "authorizationCancelled", ...at, logIndex, id, signer }) as const;
    const vault = (vaultId: bigint) => cancellationId(vaultId);
    const waiting = await engine.withdrawals.request(
      tenant.principal,
      await signedList(made, [3n, COINS]),
    );
    await engine.operator.recordEvents(
      HOME,
      [
        tell(0, id),
        tell(1, vault(3n)),
        tell(2, vault(0n), stranger),
        tell(3, numberToHex(2n ** 54n, { size: 32 })),
      ],
      9n,
    );
    const outcomeNow = async () =>
      (await engine.withdrawals.list(tenant.applicationId)).data.map(({ vaultId, status }) => [
        vaultId,
        status,
      ]);
    // The requests that waited for the vault have failed, and a stranger's word on another one is
    // nothing.
    expect((await outcomeNow()).toSorted()).toEqual([
      [0n, "accepted"],
      [3n, "failed"],
    ]);
    expect(waiting).toHaveLength(2);
    await expect(engine.withdrawals.request(tenant.principal, list)).rejects.toMatchObject({
      code: "signature_invalid",
      message: expect.stringContaining("cancelled this list on L1"),
    });
    const again = await signedList(made, [3n, 1n], { seconds: 4_000 });
    expect(outcomes(await engine.withdrawals.request(tenant.principal, again))).toEqual([
      "signature_invalid",
      "accepted",
    ]);
    const prepared = await engine.withdrawals.prepare(tenant.principal, {
      vaults: [{ vaultId: 3n }, { vaultId: 2n }],
    });
    expect([prepared.vaults.length, prepared.refused[0]?.error.message]).toEqual([
      1,
      expect.stringContaining("Only the owner itself can withdraw it"),
    ]);
    expect((await engine.operator.verify()).problems).toEqual([]);
    await engine.operator.recordReorg(HOME, 9n);
    expect((await engine.operator.verify()).problems).toEqual([]);
    expect((await outcomeNow()).toSorted()[2]).toEqual([3n, "accepted"]);
  });
});

it("answers the withdrawal that it has when its owner's wallet signs the same again and another signature comes out", async () => {
  const verifySignature = async () => true;
  const made = await holdings({ verifySignature });
  const { engine, tenant } = made;
  await using _ = engine;
  const request = await signed(made, 30n);
  const first = await withdrawOne(engine, tenant.principal, request);
  const other = await withdrawOne(engine, tenant.principal, {
    ...request,
    signature: "0x1234",
  });
  expect(other).toEqual(first);
});

describe("the forms of a signature", () => {
  /** `r ‖ vs` of 65 bytes. */
  const compact = (signature: Hex): Hex => {
    const { r, vs } = compactSignature(signature);
    return `${r}${vs.slice(2)}` as Hex;
  };
  const withV = (signature: Hex, v: string): Hex => `${signature.slice(0, -2)}${v}` as Hex;

  it.each([
    [
      "v 0 or 1, as hardware wallets say it",
      (one: Hex) => withV(one, one.endsWith("1b") ? "00" : "01"),
    ],
    ["64 bytes, EIP-2098", compact],
  ])("that L1 takes are made of %s, and no wallet is asked", async (_, formOf) => {
    const made = await holdings();
    const { engine, tenant } = made;
    await using _engine = engine;
    const list = await signedList(made, [1n]);
    const given = { ...list, signature: formOf(list.signature) };
    expect(outcomes(await engine.withdrawals.request(tenant.principal, given))).toEqual([
      "accepted",
    ]);
    const [pending] = await all(engine.operator.pendingWithdrawals(HOME));
    const taken = [list.signature, compact(list.signature)];
    expect(taken).toContain(pending?.authorization.signature);
    // Another form of the signature makes no other request.
    const [again] = await engine.withdrawals.request(tenant.principal, list);
    expect(again).toMatchObject({ repeated: true, error: null });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("that are a wallet contract's stay as they are, also none, and with v 0 or 1", async () => {
    const asked: string[] = [];
    const verifySignature = async (_: bigint, __: Hex, ___: Hex, signature: Hex) =>
      asked.push(signature) > 0;
    const made = await holdings({ verifySignature });
    const { engine, tenant } = made;
    await using _ = engine;
    const strangers = (await signedList(made, [1n], { signer: OWNERS[1] })).signature;
    const forms = ["0x", withV(strangers, "00"), withV(strangers, "1f")] as const;
    for (const [i, signature] of forms.entries()) {
      const list = await signedList(made, [BigInt(i + 1)]);
      await engine.withdrawals.request(tenant.principal, { ...list, signature });
    }
    expect(asked).toEqual(forms);
    const pending = await all(engine.operator.pendingWithdrawals(HOME));
    expect(pending.map(({ authorization }) => authorization.signature)).toEqual(forms);
  });

  it("that are of a wallet that is not deployed are refused with what to do", async () => {
    const made = await holdings({ verifySignature: async () => false });
    const { engine, tenant } = made;
    await using _ = engine;
    const list = await signedList(made, [1n]);
    const signature = `0x1234${"6492".repeat(16)}` as const;
    await expect(
      engine.withdrawals.request(tenant.principal, { ...list, signature }),
    ).rejects.toMatchObject({
      code: "signature_invalid",
      message: expect.stringContaining("Deploy the wallet"),
    });
  });

  it("that L1 refused give way to a better one", async () => {
    const made = await holdings({ verifySignature: async () => true });
    const { engine, tenant } = made;
    await using _ = engine;
    const list = await signedList(made, [1n]);
    const asked = { ...list, signature: "0x1234" } as const;
    const [first] = await engine.withdrawals.request(tenant.principal, asked);
    const signatures = async () =>
      (await all(engine.operator.pendingWithdrawals(HOME))).map(
        ({ authorization }) => authorization.signature,
      );
    // Until L1 refuses it, the first one stays.
    await engine.withdrawals.request(tenant.principal, list);
    expect(await signatures()).toEqual(["0x1234"]);
    const id = first?.withdrawal?.withdrawalId ?? "";
    await engine.operator.recordWithdrawalAttempt(id, "SignatureInvalid");
    expect(idsOf(await engine.withdrawals.request(tenant.principal, list))).toEqual([id]);
    expect(await signatures()).toEqual([list.signature]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("that L1 refused keep their owner from no other withdrawal of the vault", async () => {
    const made = await holdings({ verifySignature: async () => true });
    const { engine, tenant } = made;
    await using _ = engine;
    const list = await signedList(made, [1n, 2n]);
    const asked = { ...list, signature: "0x1234" } as const;
    const [first, other] = idsOf(await engine.withdrawals.request(tenant.principal, asked));
    const prepare = () =>
      engine.withdrawals.prepare(tenant.principal, { vaults: [{ vaultId: 1n }] });
    const again = await signedList(made, [1n]);
    const request = () => engine.withdrawals.request(tenant.principal, again);
    const pending = { code: "withdrawal_pending" };
    for (const failure of [null, "TokenRefused(0x12, 0x)"]) {
      if (failure !== null) await engine.operator.recordWithdrawalAttempt(first ?? "", failure);
      await expect(prepare()).rejects.toMatchObject(pending);
      await expect(request()).rejects.toMatchObject(pending);
    }
    await engine.operator.recordWithdrawalAttempt(first ?? "", `SignatureInvalid(${hashOf(1)})`);
    expect((await prepare()).vaults).toMatchObject([{ vaultId: 1n, withdrawnBefore: 0n }]);
    const [replacing] = idsOf(await request());
    const statusOf = async (id = "") =>
      (await engine.withdrawals.get(tenant.applicationId, id)).status;
    expect(await Promise.all([first, other, replacing].map(statusOf))).toEqual([
      "failed",
      "accepted",
      "accepted",
    ]);
    expect(await engine.vaults.get(tenant.applicationId, 1n)).toMatchObject({
      availableBalance: 0n,
    });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
