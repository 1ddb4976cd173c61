import { type Address, toHex } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { ITEM_GAS } from "../../core/gas.ts";
import {
  provenVaultArguments,
  withdrawalArguments,
  withdrawalBatchArguments,
} from "../../core/l1/arguments.ts";
import type { Standard } from "../../core/model.ts";
import type { VaultContent, WithdrawalCall } from "../../core/ports.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { placeVaults, type VaultEntry } from "../../core/protocol/batch-data.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { account, CHAIN_ID, type GasChain, openGasChain, owners } from "./chain.ts";
import { type Send, sendBlobs, sendCalldata } from "./commits.ts";
import { type Measurement, measurement, type Section } from "./report.ts";

const VAULTS = 1_024;
/** From this slot on, one owner has all vaults. */
const COLLECTION = 768;
const TOGETHER = 20;
const SINGLE_RATIO = 1.6;
const TOGETHER_RATIO = 1.1;
const LIST_RATIO = 1.05;
/** Gas for an ERC-721 whose storage word is shared, before batches named their assets. */
const WITHOUT_MANIFEST = 105_154;
/** Gas that showing the asset may add when it is one of as many as a batch can have. */
const AMONG_MOST_ASSETS = 6_000;
const MOST_ASSETS = 255;
/** An owner's call and a relayed one, by standard, whose storage word is shared. */
const SHARED_AIM = { erc721: 104_800, erc1155: null, erc20: 87_533 } as const;
const RELAYED_AIM = { erc721: 112_500, erc1155: null, erc20: null } as const;
const OPENED_AIM = 153_354;
/** Lengths of texts in blobs, by slot: one to nine continuations. */
const TEXTS = { 400: 30, 401: 62, 402: 255 } as const;
const TEXT_AIMS: Readonly<Record<number, number>> = { 62: 313_948, 255: 636_842 };
const OPENED_TOGETHER_AIM = 125_000;
/** Seconds, the same in every run. */
const COMMITTED_AT = 4_102_444_801;
const DEADLINE = 2n ** 40n;
const NAMES = { erc721: "ERC-721", erc1155: "ERC-1155", erc20: "ERC-20" } as const;

/** @param plain - gas of a mint to an owner without a balance, by standard */
export async function withdrawalSection(
  plain: Readonly<Record<Standard, number>>,
): Promise<Section> {
  const measurements: Measurement[] = [];
  for (const standard of ["erc721", "erc1155", "erc20"] as const) {
    // Only the ERC-721 figures are targets: the others pay for a whole balance word instead of a
    // bit.
    const isUnique = standard === "erc721";
    const aim = (ratio: number) => (isUnique ? Math.floor(plain[standard] * ratio) : null);
    const row = (what: string, gas: number, count = 1, target: number | null = null) =>
      measurements.push(measurement(`${NAMES[standard]}, ${what}`, gas, count, target));
    const chain = await openGasChain();
    const batch = await commitBatch(chain, standard);
    row("owner calls, storage word new", await batch.single(0));
    row("owner calls, storage word shared", await batch.single(1), 1, SHARED_AIM[standard]);
    row("relayed with a signature, word shared", await batch.relayed(2), 1, RELAYED_AIM[standard]);
    row("one in a batch, word shared", await batch.owned([3]), 1, aim(SINGLE_RATIO));
    row(
      `${TOGETHER} owners at once, signatures`,
      await batch.together(),
      TOGETHER,
      aim(TOGETHER_RATIO),
    );
    // Both rows withdraw these vaults, from one state.
    const before = await chain.networkHelpers.takeSnapshot();
    const ownCall = await batch.owned(slotsFrom(COLLECTION));
    await before.restore();
    row(`${TOGETHER} of one owner at once, its own call`, ownCall, TOGETHER, aim(TOGETHER_RATIO));
    const listAim = Math.floor((ownCall * LIST_RATIO) / TOGETHER);
    row(`${TOGETHER} of one owner at once, one signature`, await batch.listed(), TOGETHER, listAim);
    if (isUnique) measurements.push(...(await voidings(batch)), await amongMostAssets(chain));
  }
  return {
    title: "Withdrawals",
    method: `Each withdrawal takes a whole vault of a batch of ${VAULTS.toLocaleString("en")} (10 siblings), through this project's tokens, to an owner who
held none of the token. 256 ERC-721 vaults share a storage word, of others four. A batched figure includes its part of a
new word. Aims:

- one ERC-721 in a batch: ${SINGLE_RATIO} times a plain OpenZeppelin mint to a new owner; twenty together: ${TOGETHER_RATIO} times
- one signature over twenty vaults: ${LIST_RATIO} times the owner's own call
- one of ${MOST_ASSETS} assets: ${AMONG_MOST_ASSETS.toLocaleString("en")} gas more`,
    unit: "withdrawal",
    measurements,
  };
}

/** The cost of withdrawing an ERC-721 from blobs: one opening of 50,000 gas each. */
export async function openingSection(): Promise<Section> {
  const texts = Object.entries(TEXTS).map(([slot, length]) => [Number(slot), length] as const);
  const text = (length: number) => ({ mintingBlob: toHex("x".repeat(length)) });
  const batch = await commitBatch(await openGasChain(), "erc721", {
    send: sendBlobs,
    others: new Map(texts.map(([slot, length]) => [slot, text(length)])),
  });
  const row = (what: string, ...figures: [number, number?, number?]) =>
    measurement(`ERC-721, ${what}`, ...figures);
  const measurements = [
    row("owner calls, storage word new", await batch.single(0)),
    row("owner calls, storage word shared", await batch.single(1), 1, OPENED_AIM),
    row("relayed with a signature, word shared", await batch.relayed(2)),
    row(
      `${TOGETHER} owners at once, signatures`,
      await batch.together(),
      TOGETHER,
      OPENED_TOGETHER_AIM,
    ),
    row(
      `${TOGETHER} of one owner at once, one signature`,
      await batch.listed(),
      TOGETHER,
      OPENED_TOGETHER_AIM,
    ),
    ...(await voidings(batch, sendBlobs)),
  ];
  for (const [slot, length] of texts) {
    const gas = await batch.single(slot);
    measurements.push(row(`owner calls, text of ${length} bytes`, gas, 1, TEXT_AIMS[length]));
  }
  return {
    title: "Withdrawals from blobs",
    method: `As above, for vaults of a batch in one blob. L1 opens one element for each, two for ids of 2^80 or more, two to ten for
texts.`,
    unit: "withdrawal",
    measurements,
  };
}

/** Voids vaults of the second of two batches of the same tokens, one by one. */
async function voidings(first: Batch, send?: Send): Promise<Measurement[]> {
  const { chain } = first;
  const second = await commitBatch(chain, "erc721", { number: 1, send, before: null });
  const voidAt = (slot: number) => {
    const [earlier, later] = [first.request(slot), second.request(slot)];
    const proofs = [...provenVaultArguments(earlier), ...provenVaultArguments(later)] as const;
    return chain.gasOf(chain.state.write.voidDuplicate(proofs));
  };
  const label = "ERC-721, a duplicate voided, storage word";
  return [
    measurement(`${label} new`, await voidAt(0)),
    measurement(`${label} shared`, await voidAt(1)),
  ];
}

/**
 * An owner's call for an ERC-721 in a batch with as many assets as it can have; the others live on
 * another chain.
 */
async function amongMostAssets(chain: GasChain): Promise<Measurement> {
  const others = new Map<number, VaultEntry>();
  for (const [i, token] of owners(MOST_ASSETS - 1, "other token").entries()) {
    await chain.state.write.registerAsset([1, 1n, token, 1n, 0]);
    const type = assetType("erc20", token, 1n);
    const amount = BigInt(i + 1);
    others.set(i, { chainId: 1n, owner: token, assetType: type, amount, mintingBlob: "0x" });
  }
  const batch = await commitBatch(chain, "erc721", { number: 2, others, before: 310 });
  const label = `ERC-721, owner calls, storage word shared, one of ${MOST_ASSETS} assets of the batch`;
  return measurement(label, await batch.single(311), 1, WITHOUT_MANIFEST + AMONG_MOST_ASSETS);
}

interface BatchOptions {
  readonly number?: number;
  readonly send?: Send | undefined;
  /** Fields in which vaults differ from the others, by slot. */
  readonly others?: ReadonlyMap<number, Partial<VaultEntry>>;
  /** A slot that is withdrawn at once, so that no counter of the token is zero; null for none. */
  readonly before?: number | null;
}

type Batch = Awaited<ReturnType<typeof commitBatch>>;

/**
 * A committed batch of 1,024 vaults of one token, with known owners; the first 768 vaults have
 * different ones. Each function withdraws vaults in its own way, and resolves with the gas.
 */
async function commitBatch(chain: GasChain, standard: Standard, options: BatchOptions = {}) {
  const { number = 0, send = sendCalldata, others = new Map(), before = 300 } = options;
  const { state, gasOf, settlement } = chain;
  const keys = Array.from({ length: VAULTS }, (_, i) =>
    account(`${standard} owner ${Math.min(i, COLLECTION)}`),
  );
  const slots: VaultEntry[] = keys.map(({ address: owner }, i) => ({
    chainId: CHAIN_ID,
    owner,
    assetType: chain.tokens[standard].type,
    amount: standard === "erc721" ? 1n : 1_000n,
    mintingBlob: standard === "erc20" ? "0x" : toHex(String(100_000 + i)),
    ...others.get(i),
  }));
  // The header contains the time, whose zero bytes are cheaper than others.
  await chain.networkHelpers.time.setNextBlockTimestamp(COMMITTED_AT + number * 0x10000);
  const { hash, proofOf } = await send(chain, slots, number);
  const vaults = placeVaults(slots, "zk-rollup", number).filter((vault) => vault !== null);
  const header = await chain.header(hash);

  const request = (slot: number): WithdrawalCall => {
    const vault = vaults[slot] as VaultContent;
    const terms = { quantity: vault.amount, recipient: vault.owner, authorization: null };
    return { ...proofOf(vault), header, ...terms };
  };
  const ownerOf = (slot: number) => keys[slot] as PrivateKeyAccount;
  /** One owner's withdrawals, under its one signature. */
  const listed = async (slots: readonly number[]): Promise<WithdrawalCall[]> => {
    const requests = slots.map(request);
    const owner = ownerOf(slots[0] ?? 0);
    const list = requests.map(({ vault, quantity }) => ({
      vaultId: vault.vaultId,
      withdrawnBefore: 0n,
      quantity,
    }));
    const message = { vaults: list, recipient: owner.address, deadline: DEADLINE };
    const signature = await owner.signTypedData(withdrawalListTypedData(settlement, message));
    const authorization = { deadline: DEADLINE, signature, list };
    return requests.map((each) => ({ ...each, authorization }));
  };
  const sendAll = async (
    requests: readonly WithdrawalCall[],
    sender: { readonly account?: Address } = {},
  ) => {
    const height = await chain.client.getBlockNumber();
    const args = withdrawalBatchArguments(requests, ITEM_GAS);
    const gas = await gasOf(state.write.withdrawBatch(args, { gas: 16_000_000n, ...sender }));
    const failed = await state.getEvents.WithdrawalFailed({}, { fromBlock: height + 1n });
    if (failed.length > 0)
      throw new Error(`${failed.length} of ${requests.length} withdrawals failed`);
    return gas;
  };
  /** The owner sends the transaction itself. */
  const single = async (slot: number) =>
    gasOf(
      state.write.withdraw(
        withdrawalArguments(request(slot)),
        await chain.act(ownerOf(slot).address),
      ),
    );
  if (before !== null) await single(before);
  return {
    chain,
    request,
    single,
    /** Anyone sends the owner's list of one vault. */
    relayed: async (slot: number) => sendAll(await listed([slot])),
    /** One owner sends requests for its own vaults. */
    owned: async (slots: number[]) =>
      sendAll(slots.map(request), await chain.act(ownerOf(slots[0] ?? 0).address)),
    /** Anyone sends the lists of one vault each of twenty owners. */
    together: async () =>
      sendAll((await Promise.all(slotsFrom(512).map((slot) => listed([slot])))).flat()),
    /** Anyone sends a list that one owner has signed. */
    listed: async () => sendAll(await listed(slotsFrom(COLLECTION))),
  };
}

function slotsFrom(from: number): number[] {
  return Array.from({ length: TOGETHER }, (_, i) => from + i);
}
