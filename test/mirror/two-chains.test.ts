import { erc20Abi, erc721Abi } from "viem";
import { afterAll, describe, expect, test } from "vitest";
import { collectSignatures } from "../../core/committee/collector.ts";
import type { Mode, VaultId } from "../../core/index.ts";
import { advanceMirror, importBatch } from "../../core/mirror/relay.ts";
import { MODES } from "../../core/model.ts";
import type { WithdrawalCall } from "../../core/ports.ts";
import { contractCode } from "../../core/protocol/contract-code.ts";
import { mirroredStateTypedData, withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { unpackBatchVaultId } from "../../core/protocol/vault.ts";
import { deployMirror, verifyMirror } from "../../scripts/deploy/mirror.ts";
import { COMMITTEE, OPERATOR, THRESHOLD, USERS } from "../../scripts/sandbox/accounts.ts";
import { listOfOne } from "../one-withdrawal.ts";
import { at, MATURITY } from "../settlement/fixture.ts";
import { CONFIRMATIONS, createMirrorWorld } from "./fixture.ts";

const OWNER = USERS[0].owner;

/** One vault of each standard and mode, all of tokens that live on the far chain. */
const vaults = new Map<`${"erc20" | "erc721"} ${Mode}`, VaultId>();

const world = await createMirrorWorld();
const { near, far } = world;
for (const mode of MODES) {
  vaults.set(`erc20 ${mode}`, await { ...near, assets: far.assets }.mint("erc20", mode, "", 5));
  vaults.set(`erc721 ${mode}`, await { ...near, assets: far.assets }.mint("erc721", mode, mode));
}
/** One of a token that lives beside the state. */
const nearVault = await near.mint("erc20", "validium");
await near.settler.round();
afterAll(() => world.close());

const committee = () => ({ members: world.attesters, threshold: THRESHOLD, timeoutMs: 20_000 });
const relay = () =>
  advanceMirror({ source: world.source, mirror: world.mirror, committee: committee() });

/** The owner's call of the mirror, after its batch is made known there. */
async function callOf(vaultId: VaultId, quantity = 1n): Promise<WithdrawalCall> {
  const { mode, batchNumber } = unpackBatchVaultId(vaultId);
  const { vault, siblings, assetPath } = await world.near.engine.proofs.vault(vaultId);
  const header = await importBatch(world, mode, batchNumber);
  return {
    vault,
    header,
    siblings,
    assetPath,
    quantity,
    recipient: OWNER.address,
    authorization: null,
  };
}

function vaultOf(name: `${"erc20" | "erc721"} ${Mode}`): VaultId {
  const vaultId = vaults.get(name);
  if (vaultId === undefined) throw new Error(`no vault ${name}`);
  return vaultId;
}

/** A state of the source, signed for whichever mirror and source are named. */
async function signed(
  { countValidium, countRollup }: { countValidium: number; countRollup: number },
  change: {
    mirror?: Partial<typeof world.mirror.settlement>;
    source?: Partial<typeof world.mirror.source>;
  } = {},
) {
  const target = { ...world.mirror.settlement, ...change.mirror };
  const source = { ...world.mirror.source, ...change.source };
  const { commitment } = world.source.stateAt({ countValidium, countRollup });
  const state = {
    sourceChainId: source.chainId,
    sourceContract: source.contract,
    countValidium,
    countRollup,
    commitment,
  };
  const { epoch } = await world.mirror.committee();
  const typedData = mirroredStateTypedData(target, { ...state, epoch });
  const members = world.attesters.map(({ address }) => ({
    address,
    // A member's key over exactly this message, as it might be used for another mirror.
    attest: async () => {
      const member = COMMITTEE.find((account) => account.address.toLowerCase() === address);
      if (member === undefined) throw new Error("not a member");
      return member.signTypedData(typedData);
    },
  }));
  return collectSignatures(
    { members, threshold: THRESHOLD },
    { typedData, ask: (member) => member.attest() },
  );
}

describe("a mirror on another chain", () => {
  test("hears nothing of a state that is not final", async () => {
    expect(await relay()).toBe(0);
    const counts = { countValidium: 1, countRollup: 0 };
    const attested = at(world.attesters, 0).attest(world.mirror.settlement, counts, 0n);
    await expect(attested).rejects.toMatchObject({
      code: "l1_failed",
      message: expect.stringContaining("no final state"),
    });
  });

  test("refuses an attestation for another chain, another mirror, or another source", async () => {
    await world.near.chain.mine(Number(CONFIRMATIONS));
    await world.source.follow();
    const empty = world.source.stateAt({ countValidium: 0, countRollup: 0 });
    const growth = world.source.nextGrowth(empty);
    if (growth === null) throw new Error("nothing to mirror");
    const to = { countValidium: growth.count, countRollup: 0 };
    for (const change of [
      { mirror: { chainId: 31_339n } },
      { mirror: { contract: `0x${"77".repeat(20)}` } },
      { source: { chainId: 1n } },
      { source: { contract: `0x${"77".repeat(20)}` } },
    ] as const) {
      const foreign = world.mirror.advance(empty, growth, await signed(to, change));
      await expect(foreign).rejects.toThrow("CommitteeMismatch");
    }
    // An unchanged call is taken: the refusals above were for the one thing changed.
    await world.mirror.advance(empty, growth, await signed(to));
    await expect(world.mirror.advance(empty, growth, await signed(to))).rejects.toThrow(
      "CommitmentMismatch",
    );
  });

  test("is advanced to the source's own commitment, and takes no older one", async () => {
    expect(await relay()).toBe(1);
    expect(await relay()).toBe(0);
    const { commitment } = await world.near.l1.state();
    expect(await world.mirror.commitment()).toBe(commitment);
    expect(world.source.countsAt(commitment)).toEqual({ countValidium: 1, countRollup: 1 });
    expect(() => world.source.countsAt(`0x${"11".repeat(32)}`)).toThrow(
      "no final state with commitment",
    );
    // The first step again, claimed to follow on the present state.
    const now = world.source.stateAt({ countValidium: 1, countRollup: 1 });
    const growth = world.source.nextGrowth({ countValidium: 0, countRollup: 0 });
    if (growth === null) throw new Error("nothing to mirror");
    const attestation = await signed({ countValidium: 1, countRollup: 0 });
    await expect(world.mirror.advance(now, growth, attestation)).rejects.toThrow("StateNotNewer");
  });

  test.each(MODES)(
    "pays an ERC-20 of its own chain from %s, and never more than the vault",
    async (mode) => {
      const mirror = await world.far.mirrorBy(OWNER);
      const call = await callOf(vaultOf(`erc20 ${mode}`), 5n);
      const token = world.far.tokens.get("erc20") ?? "0x";
      const balance = () =>
        world.far.client.readContract({
          abi: erc20Abi,
          address: token,
          functionName: "balanceOf",
          args: [OWNER.address],
        });
      const before = await balance();
      await mirror.withdrawOwn(call);
      expect((await balance()) - before).toBe(50n);
      await expect(mirror.withdrawOwn(call)).rejects.toThrow("VaultExhausted");
    },
  );

  test.each(MODES)(
    "pays an ERC-721 from %s once it has known the batch for the maturity time",
    async (mode) => {
      const mirror = await world.far.mirrorBy(OWNER);
      const call = await callOf(vaultOf(`erc721 ${mode}`));
      if (mode === MODES[0]) {
        await expect(mirror.withdrawOwn(call)).rejects.toThrow("NotMature");
        await world.far.passSeconds(MATURITY);
      }
      await mirror.withdrawOwn(call);
      const token = world.far.tokens.get("erc721") ?? "0x";
      const args = [OWNER.address] as const;
      const held = await world.far.client.readContract({
        abi: erc721Abi,
        address: token,
        functionName: "balanceOf",
        args,
      });
      expect(held).toBe(BigInt(MODES.indexOf(mode) + 1));
    },
  );

  test("pays nothing of the source's chain, and the source nothing of the mirror's", async () => {
    const { near, far } = world;
    const mirror = await far.mirrorBy(OWNER);
    expect(await mirror.checkWithdrawal(await callOf(nearVault))).toContain("OtherChain");
    const { header, ...proof } = await near.engine.proofs.vault(vaultOf("erc20 validium"));
    if (header === null) throw new Error("the batch is not committed");
    const call = {
      ...proof,
      header,
      quantity: 1n,
      recipient: OWNER.address,
      authorization: null,
    };
    expect(await near.l1.checkWithdrawal(call)).toContain("OtherChain");
    // The other way round, each contract knows only its own headers.
    expect(await mirror.checkWithdrawal({ ...call, vault: proof.vault })).toContain(
      "HeaderMismatch",
    );
  });

  test("takes an owner's signature for this mirror, and none for the source or for another mirror", async () => {
    const vaultId = await { ...world.near, assets: world.far.assets }.mint(
      "erc20",
      "zk-rollup",
      "",
      3,
    );
    await world.near.settler.round();
    await world.near.chain.mine(Number(CONFIRMATIONS));
    expect(await relay()).toBe(1);
    const call = await callOf(vaultId, 3n);
    const deadline = 2n ** 40n;
    const message = {
      vaultId,
      withdrawnBefore: 0n,
      quantity: 3n,
      recipient: OWNER.address,
      deadline,
    };
    const sign = async (domain: typeof world.mirror.settlement) => ({
      ...call,
      authorization: {
        deadline,
        list: listOfOne(message).vaults,
        signature: await OWNER.signTypedData(withdrawalListTypedData(domain, listOfOne(message))),
      },
    });
    const second = await deployMirror(world.far.by, world.far.config);
    const here = world.mirror.settlement;
    for (const domain of [world.near.l1.settlement, { ...here, contract: second.address }]) {
      expect(await world.mirror.checkWithdrawal(await sign(domain))).toContain("SignatureInvalid");
    }
    const { refusals } = await world.mirror.withdraw([await sign(here)]);
    expect(refusals).toEqual([null]);
    // A mirror that the token has not made its minter pays nothing, whatever it has been told.
    const other = await world.far.mirrorBy(OPERATOR, second.address);
    await advanceMirror({ source: world.source, mirror: other, committee: committee() });
    const { mode, batchNumber } = unpackBatchVaultId(vaultId);
    const header = await importBatch({ source: world.source, mirror: other }, mode, batchNumber);
    const there = await sign({ ...here, contract: second.address });
    expect(await other.checkWithdrawal({ ...there, header })).toContain("AssetNotRegistered");
  });

  test("is used with this version's code and its own domain only", async () => {
    const { far } = world;
    const genuine = (await far.client.getCode({ address: far.contract })) ?? "0x";
    const [place] = contractCode.StateMirror.immutables._domainHash;
    const domain = genuine.slice(2 + 2 * place, 2 + 2 * (place + 32));
    const setCode = (code: string) =>
      far.request({ method: "hardhat_setCode", params: [far.contract, code] });
    await setCode(genuine.replaceAll(domain, "ab".repeat(32)));
    const mirror = { ...far.config, address: far.contract, deployedAtBlock: far.deployedAtBlock };
    await expect(far.mirrorBy(OWNER)).rejects.toThrow("is not this version's StateMirror");
    await expect(verifyMirror(far.by, mirror)).rejects.toThrow("is not this version's StateMirror");
    await setCode(genuine);
    await far.mirrorBy(OWNER);
    await verifyMirror(far.by, mirror);
    await expect(verifyMirror(far.by, { ...mirror, deployedAtBlock: 0n })).rejects.toThrow(
      "block of its creation",
    );
  });

  test("goes on without two members, and stops without three", async () => {
    await { ...world.near, assets: world.far.assets }.mint("erc20", "validium");
    await world.near.settler.round();
    await world.near.chain.mine(Number(CONFIRMATIONS));
    const dead = { attest: () => Promise.reject(new Error("member is down")) };
    const without = (count: number) => ({
      ...committee(),
      members: world.attesters.map((attester, index) =>
        index < count ? { address: attester.address, ...dead } : attester,
      ),
    });
    const stopped = advanceMirror({ ...world, committee: without(3) });
    await expect(stopped).rejects.toMatchObject({
      code: "l1_failed",
      message: expect.stringContaining("is down"),
    });
    expect(await advanceMirror({ ...world, committee: without(2) })).toBe(1);
  });
});
