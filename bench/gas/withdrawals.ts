import { type Address, bytesToHex, parseEventLogs, toHex } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { provenVaultArguments, withdrawalArguments, withdrawalBatchArguments } from "../../core/l1/arguments.ts";
import type { Standard } from "../../core/model.ts";
import type { BatchHeader, VaultContent, WithdrawalCall } from "../../core/ports.ts";
import { assetType } from "../../core/protocol/asset.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { decodeBatch, placeVaults } from "../../core/protocol/batch-decoder.ts";
import { encodeBatchData } from "../../core/protocol/batch-encoder.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import { proveVault, type VaultProof } from "../../core/protocol/proof.ts";
import { withdrawalListTypedData, withdrawalTypedData } from "../../core/protocol/typed-data.ts";
import { vaultLeaves } from "../../core/protocol/vault.ts";
import { type Sent, sendBlobs } from "./blobs.ts";
import { account, CHAIN_ID, type GasChain, openGasChain, owners } from "./chain.ts";
import { type Measurement, measurement, type Section } from "./measurement.ts";
import type { Plain } from "./plain.ts";

const VAULTS = 1_024;
/** From this slot on, one owner has all vaults. */
const COLLECTION = 768;
const TOGETHER = 20;
/** The contract's minimum. */
const ITEM_GAS = 500_000n;
const SINGLE_RATIO = 1.6;
const TOGETHER_RATIO = 1.1;
const LIST_RATIO = 1.05;
/** Of an ERC-721 whose storage word is shared, before batches named their assets. */
const WITHOUT_MANIFEST = 105_154;
/** What showing the asset may add when it is the batch's only one, and when it is one of as many as a batch can have. */
const ONLY_ASSET = 1_000;
const AMONG_MOST_ASSETS = 6_000;
const MOST_ASSETS = 255;
const OPENED_AIM = 155_000;
const OPENED_TOGETHER_AIM = 125_000;
/** Seconds, the same in every run. */
const COMMITTED_AT = 4_102_444_801;
const DEADLINE = 2n ** 40n;
const BY_CALLER = { deadline: 0n, signature: "0x" } as const;

/** A committed batch of 1,024 vaults of one token, with known owners; the first 768 vaults have different ones. */
interface Committed {
  readonly vaults: readonly VaultContent[];
  readonly owners: readonly PrivateKeyAccount[];
  readonly proofOf: (vault: VaultContent) => VaultProof;
  readonly header: BatchHeader;
}

/** Commits slots as the next batch. */
type Send = (chain: GasChain, slots: readonly VaultEntry[], number: number) => Promise<Sent>;

/** The cost of withdrawing a token, compared with minting it on L1. */
export async function withdrawalSection({ newOwner }: Plain): Promise<Section> {
  const measurements: Measurement[] = [];
  for (const [standard, name] of [
    ["erc721", "ERC-721"],
    ["erc1155", "ERC-1155"],
    ["erc20", "ERC-20"],
  ] as const) {
    // Only the ERC-721 figures are targets: the others pay for a whole balance word instead of a bit.
    const aim = (ratio: number) => (standard === "erc721" ? Math.floor(newOwner[standard] * ratio) : null);
    const shown = standard === "erc721" ? WITHOUT_MANIFEST + ONLY_ASSET : null;
    const chain = await openGasChain();
    const batch = await commitBatch(chain, standard);
    // Another withdrawal comes first, so no counter of the token is zero.
    await single(chain, batch, 300);
    measurements.push(
      measurement(`${name}, owner calls, storage word new`, await single(chain, batch, 0)),
      measurement(`${name}, owner calls, storage word shared`, await single(chain, batch, 1), 1, shown),
      measurement(`${name}, relayed with a signature, word shared`, await relayed(chain, batch, 2)),
      measurement(`${name}, one in a batch, word shared`, await aloneInBatch(chain, batch, 3), 1, aim(SINGLE_RATIO)),
      measurement(
        `${name}, ${TOGETHER} owners at once, signatures`,
        await together(chain, batch, 512),
        TOGETHER,
        aim(TOGETHER_RATIO),
      ),
    );
    // The same vaults twice, from the same state.
    const before = await chain.connection.networkHelpers.takeSnapshot();
    const ownCall = await collected(chain, batch, COLLECTION);
    await before.restore();
    const relayedList = await listed(chain, batch, COLLECTION);
    measurements.push(
      measurement(`${name}, ${TOGETHER} of one owner at once, its own call`, ownCall, TOGETHER, aim(TOGETHER_RATIO)),
      measurement(
        `${name}, ${TOGETHER} of one owner at once, one signature`,
        relayedList,
        TOGETHER,
        Math.floor((ownCall * LIST_RATIO) / TOGETHER),
      ),
    );
    if (standard === "erc721") {
      measurements.push(...(await voidings(chain, batch)), await amongMostAssets(chain));
    }
  }
  return {
    title: "Withdrawals",
    method: `Each withdrawal takes the whole amount of a vault in a batch of ${VAULTS.toLocaleString("en")} (10 siblings), through this project's tokens, to an
owner who held none of the token before. An ERC-721 vault takes one bit of a storage word that 256 vaults share, others a
quarter of one. The batched figure includes a new word for every 256 or 4 vaults. Whoever watches voids the later of two
vaults of one ERC-721, each with its own proof. Aims are ${SINGLE_RATIO} and ${TOGETHER_RATIO} times a plain OpenZeppelin mint to a new owner in
the same run; for one signature over twenty vaults ${LIST_RATIO} times the owner's own call. A withdrawal shows its asset in the
batch's manifest. That may add ${ONLY_ASSET.toLocaleString("en")} gas to an owner's call for the only asset of a batch, and ${AMONG_MOST_ASSETS.toLocaleString("en")} for one of ${MOST_ASSETS}.`,
    unit: "withdrawal",
    measurements,
  };
}

/** The cost of withdrawing an ERC-721 from blobs: one opening of 50,000 gas each. */
export async function openingSection(): Promise<Section> {
  const chain = await openGasChain();
  const batch = await commitBatch(chain, "erc721", 0, sendBlobs);
  // Another withdrawal comes first, so no counter of the token is zero.
  await single(chain, batch, 300);
  const measurements = [
    measurement("ERC-721, owner calls, storage word new", await single(chain, batch, 0)),
    measurement("ERC-721, owner calls, storage word shared", await single(chain, batch, 1), 1, OPENED_AIM),
    measurement("ERC-721, relayed with a signature, word shared", await relayed(chain, batch, 2)),
    measurement(
      `ERC-721, ${TOGETHER} owners at once, signatures`,
      await together(chain, batch, 512),
      TOGETHER,
      OPENED_TOGETHER_AIM,
    ),
    measurement(
      `ERC-721, ${TOGETHER} of one owner at once, one signature`,
      await listed(chain, batch, COLLECTION),
      TOGETHER,
      OPENED_TOGETHER_AIM,
    ),
    ...(await voidings(chain, batch, sendBlobs)),
  ];
  return {
    title: "Withdrawals from blobs",
    method: `As above, for vaults of a batch in one blob. L1 opens one element for each; ids of 2^80 or more, and texts, take two or three
openings.`,
    unit: "withdrawal",
    measurements,
  };
}

async function commitBatch(
  chain: GasChain,
  standard: Standard,
  number = 0,
  send: Send = sendCalldata,
  others: readonly VaultEntry[] = [],
): Promise<Committed> {
  const { connection, state, client, types } = chain;
  const owners = Array.from({ length: VAULTS }, (_, i) => account(`${standard} owner ${Math.min(i, COLLECTION)}`));
  const slots: VaultEntry[] = owners.map(({ address }, i) => ({
    chainId: CHAIN_ID,
    owner: address,
    assetType: types[standard],
    amount: standard === "erc721" ? 1n : 1_000n,
    blob: standard === "erc20" ? "0x" : toHex(String(100_000 + i)),
    ...others[i],
  }));
  // The header contains the time, whose zero bytes are cheaper than others.
  await connection.networkHelpers.time.setNextBlockTimestamp(COMMITTED_AT + number * 0x10000);
  const { hash, proofOf } = await send(chain, slots, number);
  const { logs } = await client.getTransactionReceipt({ hash });
  const [event] = parseEventLogs({ abi: state.abi, eventName: "BatchCommitted", logs });
  if (event === undefined) throw new Error("the commit emitted no event");
  const vaults = placeVaults(slots, "zk-rollup", number).filter((vault) => vault !== null);
  return { owners, vaults, proofOf, header: event.args };
}

/** An owner's call for an ERC-721 in a batch with as many assets as it can have; the others live on another chain. */
async function amongMostAssets(chain: GasChain): Promise<Measurement> {
  const { state } = chain;
  const others: VaultEntry[] = [];
  for (const [i, token] of owners(MOST_ASSETS - 1, "other token").entries()) {
    await state.write.registerAsset([1, 1n, token, 1n, 0]);
    others.push({
      chainId: 1n,
      owner: token,
      assetType: assetType("erc20", token, 1n),
      amount: BigInt(i + 1),
      blob: "0x",
    });
  }
  const batch = await commitBatch(chain, "erc721", 2, sendCalldata, others);
  await single(chain, batch, 310);
  const gas = await single(chain, batch, 311);
  const aim = WITHOUT_MANIFEST + AMONG_MOST_ASSETS;
  return measurement(
    `ERC-721, owner calls, storage word shared, one of ${MOST_ASSETS} assets of the batch`,
    gas,
    1,
    aim,
  );
}

async function sendCalldata({ state }: GasChain, slots: readonly VaultEntry[], number: number): Promise<Sent> {
  const data = encodeBatchData(slots);
  const history = await state.read.history();
  const hash = await state.write.commitRollupBatch([history, "0x", BigInt(number), bytesToHex(data)]);
  const { assets } = decodeBatch(data);
  const tree = new BatchTree(vaultLeaves(placeVaults(slots, "zk-rollup", number)));
  return { hash, proofOf: (vault) => proveVault({ tree, assets }, vault) };
}

function requestOf({ vaults, header, proofOf }: Committed, slot: number): WithdrawalCall {
  const vault = vaults[slot];
  if (vault === undefined) throw new Error(`no vault in slot ${slot}`);
  return {
    ...proofOf(vault),
    header,
    quantity: vault.amount,
    recipient: vault.owner,
    authorization: BY_CALLER,
  };
}

async function signedRequest({ settlement }: GasChain, batch: Committed, slot: number) {
  const request = requestOf(batch, slot);
  const { vault, quantity, recipient } = request;
  const message = { vaultId: vault.vaultId, withdrawnBefore: 0n, quantity, recipient, deadline: DEADLINE };
  const owner = batch.owners[slot];
  if (owner === undefined) throw new Error(`no owner of slot ${slot}`);
  const signature = await owner.signTypedData(withdrawalTypedData(settlement, message));
  return { ...request, authorization: { deadline: DEADLINE, signature } };
}

function send({ state, gasOf }: GasChain, by: Address | null, request: WithdrawalCall): Promise<number> {
  const sender = by === null ? {} : { account: by };
  return gasOf(state.write.withdraw(withdrawalArguments(request), sender));
}

/** The owner sends the transaction itself. */
async function single(chain: GasChain, batch: Committed, slot: number): Promise<number> {
  const request = requestOf(batch, slot);
  const { owner } = request.vault;
  await act(chain, owner);
  return send(chain, owner, request);
}

/** Lets the chain send transactions of an account. */
async function act({ connection }: GasChain, owner: Address): Promise<void> {
  await connection.networkHelpers.impersonateAccount(owner);
  await connection.networkHelpers.setBalance(owner, 10n ** 18n);
}

async function relayed(chain: GasChain, batch: Committed, slot: number): Promise<number> {
  return send(chain, null, await signedRequest(chain, batch, slot));
}

/** Voids vaults of the second of two batches of the same tokens, one by one. */
async function voidings(chain: GasChain, first: Committed, send?: Send): Promise<Measurement[]> {
  const second = await commitBatch(chain, "erc721", 1, send);
  const voidAt = (slot: number) => {
    const [earlier, later] = [requestOf(first, slot), requestOf(second, slot)];
    return chain.gasOf(
      chain.state.write.voidDuplicate([...provenVaultArguments(earlier), ...provenVaultArguments(later)]),
    );
  };
  return [
    measurement("ERC-721, a duplicate voided, storage word new", await voidAt(0)),
    measurement("ERC-721, a duplicate voided, storage word shared", await voidAt(1)),
  ];
}

/** Anyone sends the signed requests of twenty owners. */
async function together(chain: GasChain, batch: Committed, from: number): Promise<number> {
  return sendAll(chain, null, await Promise.all(slotsFrom(from).map((slot) => signedRequest(chain, batch, slot))));
}

/** The owner sends a batch of one. */
async function aloneInBatch(chain: GasChain, batch: Committed, slot: number): Promise<number> {
  const request = requestOf(batch, slot);
  await act(chain, request.vault.owner);
  return sendAll(chain, request.vault.owner, [request]);
}

/** One owner sends twenty requests for its own vaults. */
async function collected(chain: GasChain, batch: Committed, from: number): Promise<number> {
  const requests = slotsFrom(from).map((slot) => requestOf(batch, slot));
  const owner = requests[0]?.vault.owner;
  if (owner === undefined) throw new Error("no request");
  await act(chain, owner);
  return sendAll(chain, owner, requests);
}

/** Anyone sends a list that one owner has signed. */
async function listed(chain: GasChain, batch: Committed, from: number): Promise<number> {
  const requests = slotsFrom(from).map((slot) => requestOf(batch, slot));
  const owner = batch.owners[from];
  if (owner === undefined) throw new Error(`no owner of slot ${from}`);
  const list = requests.map(({ vault, quantity }) => ({ vaultId: vault.vaultId, withdrawnBefore: 0n, quantity }));
  const message = { vaults: list, recipient: owner.address, deadline: DEADLINE };
  const signature = await owner.signTypedData(withdrawalListTypedData(chain.settlement, message));
  const authorization = { deadline: DEADLINE, signature, list };
  return sendAll(
    chain,
    null,
    requests.map((request) => ({ ...request, authorization })),
  );
}

function slotsFrom(from: number): number[] {
  return Array.from({ length: TOGETHER }, (_, i) => from + i);
}

async function sendAll(
  { client, state, gasOf }: GasChain,
  by: Address | null,
  requests: WithdrawalCall[],
): Promise<number> {
  const before = await client.getBlockNumber();
  const sender = by === null ? {} : { account: by };
  const gas = await gasOf(
    state.write.withdrawBatch(withdrawalBatchArguments(requests, ITEM_GAS), { gas: 16_000_000n, ...sender }),
  );
  const failed = await state.getEvents.WithdrawalFailed({}, { fromBlock: before + 1n });
  if (failed.length > 0) throw new Error(`${failed.length} of ${requests.length} withdrawals failed`);
  return gas;
}
