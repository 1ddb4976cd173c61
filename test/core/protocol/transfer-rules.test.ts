import fc from "fast-check";
import { zeroAddress } from "viem";
import { describe, expect, it } from "vitest";
import {
  type CommittedRecord,
  type TransferableVault,
  type TransferFault,
  type TransferPowers,
  type TransferSession,
  transferFault,
  transferredVault,
} from "../../../core/protocol/transfer-rules.ts";
import { derivedAddress, derivedHash, vectors } from "./vectors.ts";

const OWNER = derivedAddress("owner");
const KEY = derivedAddress("key");
const ANY_ASSET = `0x${"00".repeat(32)}` as const;
const VAULT: TransferableVault = {
  vaultId: 1n,
  owner: OWNER,
  amount: 100n,
  withdrawn: 40n,
  standard: "erc20",
  assetType: derivedHash("asset"),
  transferable: true,
  hops: 3,
};
const RECORD: CommittedRecord = {
  transfer: { vaultId: 1n, amount: 0n, to: derivedAddress("friend") },
  deadline: 1000n,
  committedAt: 1000n,
};
const BY_OWNER: TransferPowers = {
  signer: OWNER,
  session: null,
  approvedAt: 0n,
  cancelledAt: 0n,
  signerCancelledAt: 0n,
};
const SESSION: TransferSession = {
  authorizedAt: 999n,
  until: 1000n,
  revokedAt: 0n,
  limit: 100n,
  assetType: ANY_ASSET,
};
const bySession = (change: Partial<TransferSession> = {}): TransferPowers => ({
  signer: KEY,
  session: { ...SESSION, ...change },
  approvedAt: 0n,
  cancelledAt: 0n,
  signerCancelledAt: 0n,
});
const units = (amount: bigint): CommittedRecord => ({
  ...RECORD,
  transfer: { ...RECORD.transfer, amount },
});

describe("a record", () => {
  it("moves a vault that its owner signed away", () => {
    expect(transferFault(VAULT, RECORD, BY_OWNER)).toBeNull();
    expect(transferFault(VAULT, units(59n), BY_OWNER)).toBeNull();
  });

  it.each(vectors("transfer-rules").vectors)(
    "of $amount by the $by, behind $before others, counts: $counts",
    (vector) => {
      const { by, amount, before, counts } = vector;
      const powers = by === "owner" ? BY_OWNER : bySession();
      const fault = transferFault({ ...VAULT, hops: before }, units(BigInt(amount)), powers);
      expect(fault).toBe(counts ? null : "too_deep");
    },
  );

  it.each<[TransferFault, string, Partial<TransferableVault>, CommittedRecord, TransferPowers]>([
    ["other_vault", "of another vault", { vaultId: 2n }, RECORD, BY_OWNER],
    ["expired", "after the deadline", {}, { ...RECORD, committedAt: 1001n }, BY_OWNER],
    ["not_transferable", "of another kind of asset", { transferable: false }, RECORD, BY_OWNER],
    ["too_deep", "behind eight others", { hops: 8 }, RECORD, BY_OWNER],
    ["exhausted", "of an empty vault", { withdrawn: 100n }, RECORD, BY_OWNER],
    ["amount", "of the whole rest by its number", {}, units(60n), BY_OWNER],
    [
      "amount",
      "of a part of an ERC-721",
      { standard: "erc721", amount: 1n, withdrawn: 0n },
      units(1n),
      BY_OWNER,
    ],
    [
      "cancelled",
      "of a list that was cancelled before",
      {},
      RECORD,
      { ...BY_OWNER, cancelledAt: 999n },
    ],
    [
      "not_authorized",
      "of nobody's vault",
      { owner: zeroAddress },
      RECORD,
      { ...BY_OWNER, signer: zeroAddress },
    ],
    ["not_authorized", "without a signer", {}, RECORD, { ...BY_OWNER, signer: null }],
    ["not_authorized", "of another signer", {}, RECORD, { ...BY_OWNER, signer: KEY }],
    [
      "not_authorized",
      "approved in the commit's second",
      {},
      RECORD,
      { ...BY_OWNER, signer: null, approvedAt: 1000n },
    ],
    [
      "not_authorized",
      "of a session that begins in that second",
      {},
      RECORD,
      bySession({ authorizedAt: 1000n }),
    ],
    [
      "not_authorized",
      "of a session that never began",
      {},
      RECORD,
      bySession({ authorizedAt: 0n }),
    ],
    ["not_authorized", "of an expired session", {}, RECORD, bySession({ until: 999n })],
    ["not_authorized", "of a revoked session", {}, RECORD, bySession({ revokedAt: 999n })],
    ["not_authorized", "above a session's limit", {}, units(51n), bySession({ limit: 50n })],
    ["not_authorized", "of a whole vault above the limit", {}, RECORD, bySession({ limit: 99n })],
    [
      "not_authorized",
      "of an asset outside the session",
      {},
      RECORD,
      bySession({ assetType: derivedHash("other") }),
    ],
  ])("has the fault %s: %s", (fault, _, change, record, powers) => {
    expect(transferFault({ ...VAULT, ...change }, record, powers)).toBe(fault);
  });

  it("moves a vault by an earlier approval, or by a session in force", () => {
    expect(
      transferFault(VAULT, RECORD, { ...BY_OWNER, signer: null, approvedAt: 999n }),
    ).toBeNull();
    expect(transferFault(VAULT, RECORD, { ...BY_OWNER, cancelledAt: 1000n })).toBeNull();
    // A signer that the record does not rest on has no say.
    expect(
      transferFault(VAULT, RECORD, {
        ...BY_OWNER,
        approvedAt: 1n,
        signer: KEY,
        signerCancelledAt: 2n,
      }),
    ).toBeNull();
    expect(transferFault(VAULT, RECORD, { ...BY_OWNER, signer: KEY, signerCancelledAt: 2n })).toBe(
      "cancelled",
    );
    expect(transferFault(VAULT, RECORD, bySession())).toBeNull();
    expect(
      transferFault(VAULT, RECORD, bySession({ revokedAt: 1000n, assetType: VAULT.assetType })),
    ).toBeNull();
    expect(transferFault(VAULT, units(50n), bySession({ limit: 50n }))).toBeNull();
  });

  it("that moves nothing never moves anything later, whatever happens on L1", () => {
    const few = fc.bigInt({ min: 0n, max: 6n });
    const states = fc.record({
      amount: fc.bigInt({ min: 1n, max: 6n }),
      withdrawn: few,
      recordAmount: few,
      committedAt: few,
      deadline: few,
      hops: fc.integer({ min: 0, max: 8 }),
      signer: fc.constantFrom(OWNER, KEY, null),
      approvedAt: few,
      cancelledAt: few,
      signerCancelledAt: few,
      session: fc.record({ authorizedAt: few, until: few, revokedAt: few, limit: few }),
      // Changes on the chain after the commit, at its time or later.
      more: few,
      later: fc.record({
        authorize: fc.boolean(),
        approve: fc.boolean(),
        revoke: fc.boolean(),
        cancel: fc.boolean(),
        delay: few,
      }),
    });
    fc.assert(
      fc.property(states, (s) => {
        const vault = {
          ...VAULT,
          hops: s.hops,
          amount: s.amount,
          withdrawn: s.withdrawn > s.amount ? s.amount : s.withdrawn,
        };
        const record = {
          ...units(s.recordAmount),
          committedAt: s.committedAt,
          deadline: s.deadline,
        };
        // L1 knows nothing of the future: what is there at the commit was there at its time or
        // before.
        const known = (time: bigint) => (time > s.committedAt ? 0n : time);
        const session = {
          ...s.session,
          authorizedAt: known(s.session.authorizedAt),
          revokedAt: known(s.session.revokedAt),
          assetType: ANY_ASSET,
        };
        const times = {
          approvedAt: known(s.approvedAt),
          cancelledAt: known(s.cancelledAt),
          signerCancelledAt: known(s.signerCancelledAt),
        };
        const before: TransferPowers = { signer: s.signer, session, ...times };
        const now = s.committedAt + s.later.delay;
        const once = (present: bigint, happens: boolean) =>
          present === 0n && happens ? now : present;
        const isOpen = session.authorizedAt === 0n && session.revokedAt === 0n;
        const after: TransferPowers = {
          signer: s.signer,
          approvedAt: once(before.approvedAt, s.later.approve),
          cancelledAt: once(before.cancelledAt, s.later.cancel),
          signerCancelledAt: once(before.signerCancelledAt, s.later.cancel),
          session: {
            ...session,
            authorizedAt: once(session.authorizedAt, s.later.authorize && isOpen),
            revokedAt: once(session.revokedAt, s.later.revoke),
          },
        };
        const valid = transferFault(vault, record, before) === null;
        const withdrawn = vault.withdrawn + (s.more > vault.amount - vault.withdrawn ? 0n : s.more);
        // The contract lets nobody withdraw from a vault that a valid record moved.
        const next = valid ? vault : { ...vault, withdrawn };
        expect(transferFault(next, record, after) === null).toBe(valid);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("a chain of records", () => {
  const part = (outId: bigint, which: 0 | 1) => ({ outId, part: which });

  it("splits a vault into exactly what was left", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 59n }), (amount) => {
        const parts = ([0, 1] as const).map((which) =>
          transferredVault(VAULT, units(amount), part(7n, which)),
        );
        expect(parts.reduce((sum, made) => sum + made.amount, 0n)).toBe(60n);
        expect(parts.map(({ owner }) => owner)).toEqual([RECORD.transfer.to, OWNER]);
        expect(parts.every(({ withdrawn }) => withdrawn === 0n)).toBe(true);
      }),
    );
  });

  it("ends behind eight records, of which a session's key can split it in four", () => {
    const key = bySession({ limit: 1n });
    let made: TransferableVault = { ...VAULT, hops: 0, withdrawn: 0n, amount: 1_000n };
    for (let hops = 0; hops < 8; hops++) {
      const record = units(1n);
      expect(transferFault(made, record, key)).toBe(hops < 4 ? null : "too_deep");
      expect(transferFault(made, record, BY_OWNER)).toBeNull();
      made = { ...transferredVault(made, record, part(1n, 1)) };
    }
    expect(transferFault(made, units(1n), BY_OWNER)).toBe("too_deep");
    expect(transferFault(made, RECORD, BY_OWNER)).toBe("too_deep");
  });
});
