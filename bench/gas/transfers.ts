import { type Address, bytesToHex, concatHex, keccak256, toHex, zeroAddress } from "viem";
import { packedHops, provenVaultArguments } from "../../core/l1/arguments.ts";
import type { ProvenHop, VaultContent } from "../../core/ports.ts";
import { placeVaults } from "../../core/protocol/batch-data.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import { unpackHashes } from "../../core/protocol/hex.ts";
import { compactBytes } from "../../core/protocol/signature.ts";
import type { Transfer } from "../../core/protocol/transfer.ts";
import * as transferring from "../../core/protocol/transfer.ts";
import {
  encodeTransferData,
  type TransferGroup,
  transferLeaves,
  transferOutputs,
} from "../../core/protocol/transfer-data.ts";
import { hopOf } from "../../core/protocol/transfer-proof.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { account, CHAIN_ID, type GasChain, openGasChain, owners } from "./chain.ts";
import { sendCalldata } from "./commits.ts";
import { type Measurement, measurement, type Section } from "./report.ts";

const OWN_SIGNATURE_AIM = 3_750;
const ONE_SIGNATURE_AIM = 1_300;
const GIFT_AIM = 800;
const ONE_HOP_AIM = 150_000;
/** Batches before the first figure, so that the frontier's slots are used. */
const WARM = 8;
const DROP = 10_240;
const MINTED = 1_024;
const BATCH = 256;
const HOPS = [1, 2, 4, 8] as const;
/** Vaults from this slot on are no part of the drop. */
const OTHERS = 1 << 19;
/** Years ahead, with the bytes of a usual one. */
const DEADLINE = 4_200_000_123n;

export async function transferSection(): Promise<Section> {
  return {
    title: "Transfers",
    method: `A \`commitTransferBatch\` with a committee of 3 of 5, for vaults chosen at random of a drop of ${DROP.toLocaleString("en")}, of which others
were transferred before. The vaults for one receiver are neighbours. Exits are the owner's own calls for an ERC-721 in a
batch of ${MINTED.toLocaleString("en")} mints and transfer batches of ${BATCH}, the storage word shared.`,
    unit: "transaction",
    measurements: [...(await commits()), ...(await exits())],
  };
}

async function commits(): Promise<Measurement[]> {
  const chain = await openGasChain();
  const { address: owner } = account("drop");
  const minted = {
    chainId: CHAIN_ID,
    assetType: chain.tokens.erc721.type,
    owner,
    amount: 1n,
    mintingBlob: "0x31",
  } as const;
  await sendCalldata(chain, [minted], 0);
  for (let i = 0; i < WARM; i++) await commit(chain, [unsigned([whole(OTHERS + i, "warm")])]);
  const order = Array.from({ length: DROP }, (_, i) => i);
  order.sort((a, b) => (keccak256(toHex(a)) < keccak256(toHex(b)) ? -1 : 1));
  let taken = 0;
  const pick = (count: number) => {
    taken += count;
    return order.slice(taken - count, taken).toSorted((a, b) => a - b);
  };
  const alone = (slot: number) => unsigned([whole(slot, "each")], DEADLINE - BigInt(slot));
  const each = (slots: readonly number[]) => slots.map(alone);
  const together = (slots: readonly number[]) => [
    unsigned(slots.map((slot) => whole(slot, "all"))),
  ];
  await commit(chain, together(pick(MINTED)));
  const row = async (
    label: string,
    groups: readonly TransferGroup[],
    count: number,
    aim?: number,
  ) => measurement(label, (await commit(chain, groups)).gas, count, aim);
  const [to = zeroAddress] = owners(1, "receiver");
  const gifts = Array.from({ length: MINTED }, (_, i) => ({ ...whole(DROP + i, "gift"), to }));
  const many = MINTED.toLocaleString("en");
  return [
    await row("one transfer", each(pick(1)), 1),
    await row(
      `${BATCH} transfers, each with a signature`,
      each(pick(BATCH)),
      BATCH,
      OWN_SIGNATURE_AIM,
    ),
    await row(`${BATCH} transfers, one signature`, together(pick(BATCH)), BATCH),
    await row(
      `${many} transfers, one signature`,
      together(pick(MINTED)),
      MINTED,
      ONE_SIGNATURE_AIM,
    ),
    await row(
      `${many} transfers to one receiver, one signature`,
      [unsigned(gifts)],
      MINTED,
      GIFT_AIM,
    ),
  ];
}

/** A vault of the first rollup batch, whole, to somebody. */
function whole(slot: number, name: string): Transfer {
  const [to = zeroAddress] = owners(1, `${name} ${slot}`);
  return { vaultId: packVaultId({ mode: "zk-rollup", batchNumber: 0, slot }), amount: 0n, to };
}

/** A group that nobody has signed, which costs L1 the same. */
function unsigned(transfers: readonly Transfer[], deadline = DEADLINE): TransferGroup {
  const random = keccak256(transfers[0]?.to ?? "0x");
  return { transfers, deadline, signature: concatHex([random, keccak256(random)]) };
}

async function commit(chain: GasChain, groups: readonly TransferGroup[]) {
  const { state } = chain;
  const [, number] = await state.read.batchCounts();
  const batchNumber = Number(number);
  const history = await state.read.history();
  const data = bytesToHex(encodeTransferData(groups));
  const leaves = transferLeaves(groups, batchNumber);
  const tree = new BatchTree(leaves);
  const content = {
    batchRoot: transferring.transferBatchRoot(bytesToHex(tree.root)),
    vaultCount: leaves.length / 32,
  };
  const message = { history, batchNumber, ...content, dataHash: keccak256(data), epoch: 0n };
  const attestation = await chain.attest(
    transferring.transferBatchTypedData(chain.settlement, message),
  );
  const hash = await state.write.commitTransferBatch([history, number, data, attestation], {
    gas: 16_000_000n,
  });
  return { gas: await chain.gasOf(hash), tree, header: await chain.header(hash), batchNumber };
}

async function exits(): Promise<Measurement[]> {
  const chain = await openGasChain();
  const { state } = chain;
  const token = await chain.token("erc721", {
    admin: account("administrator").address,
    transferable: true,
  });
  const asset = { chainId: CHAIN_ID, assetType: token.type };
  const named = (slot: number) => account(`owner ${slot}`);
  const slots = Array.from({ length: MINTED }, (_, slot) => {
    const [stranger = zeroAddress] = owners(1, `stranger ${slot}`);
    const owner = slot < 64 ? (named(slot).address.toLowerCase() as Address) : stranger;
    return { ...asset, owner, amount: 1n, mintingBlob: toHex(String(100_000 + slot)) };
  });
  const { hash, proofOf } = await sendCalldata(chain, slots, 0);
  const header = await chain.header(hash);
  const vaults = placeVaults(slots, "zk-rollup", 0) as readonly VaultContent[];
  const origin = (slot: number) =>
    provenVaultArguments({ ...proofOf(vaults[slot] as VaultContent), header });
  let filler = 0;
  /** A batch with records of these vaults, and others of 256 signatures in all. */
  const hop = async (moves: readonly { vaultId: bigint; by: string; to: string }[]) => {
    const groups = await Promise.all(
      moves.map(async ({ vaultId, by, to }) => {
        const transfers = [
          { vaultId, amount: 0n, to: account(to).address.toLowerCase() as Address },
        ];
        const message = { transfers, deadline: DEADLINE };
        const signature = await account(by).signTypedData(
          transferring.transfersTypedData(chain.settlement, message),
        );
        return { ...message, signature: compactBytes(signature) };
      }),
    );
    const others = Array.from({ length: BATCH - moves.length }, () =>
      unsigned([whole(OTHERS + filler++, "other")]),
    );
    const batch = await commit(chain, [...groups, ...others]);
    return transferOutputs(groups, batch.batchNumber).map((output, slot) =>
      hopOf(groups, output, {
        header: batch.header,
        siblings: unpackHashes(batch.tree.siblings(slot)),
      }),
    );
  };
  const exit = async (
    slot: number,
    name: string,
    hops: readonly ProvenHop[],
    refutation: readonly ProvenHop[] = [],
  ) => {
    const by = await chain.act(account(name).address);
    const call = [
      ...origin(slot),
      packedHops(hops),
      packedHops(refutation),
      1n,
      by.account,
    ] as const;
    return chain.gasOf(state.write.withdrawTransferred(call, by));
  };
  const withdraw = async (slot: number) => {
    const by = await chain.act(named(slot).address);
    return chain.gasOf(state.write.withdraw([...origin(slot), 1n, by.account], by));
  };
  // Uses the storage word, and the token's counters.
  await withdraw(0);
  const measurements = [
    measurement("exit of a vault that was never transferred", await withdraw(1)),
  ];
  for (const [i, count] of HOPS.entries()) {
    // Two vaults go the same way. The first one's exit uses the word of the second one's tip.
    const chains: [ProvenHop[], ProvenHop[]] = [[], []];
    for (let k = 0; k < count; k++) {
      const made = await hop(
        chains.map((hops, which) => ({
          vaultId: hops.at(-1)?.outId ?? vaults[10 + 2 * i + which]?.vaultId ?? 0n,
          by: k === 0 ? `owner ${10 + 2 * i + which}` : `receiver ${i} ${which} ${k - 1}`,
          to: `receiver ${i} ${which} ${k}`,
        })),
      );
      for (const [which, hops] of chains.entries()) hops.push(made[which] as ProvenHop);
    }
    const exitOf = (which: 0 | 1) =>
      exit(10 + 2 * i + which, `receiver ${i} ${which} ${count - 1}`, chains[which]);
    await exitOf(0);
    const label = `exit after ${count} transfer${count === 1 ? "" : "s"}`;
    measurements.push(measurement(label, await exitOf(1), 1, count === 1 ? ONE_HOP_AIM : null));
  }
  const bogus = await hop([{ vaultId: vaults[20]?.vaultId ?? 0n, by: "thief", to: "thief" }]);
  const refuted = await exit(20, "owner 20", [], bogus);
  measurements.push(measurement("exit over a record that does not count, refuted", refuted));
  return measurements;
}
