import { type Address, type Hash, toHex } from "viem";
import { MODE_VALUE, provenVaultArguments } from "../../core/l1/arguments.ts";
import { SourceHistory } from "../../core/mirror/history.ts";
import type { L1Event } from "../../core/ports.ts";
import { batchLeaves, placeVaults, wordBatch } from "../../core/protocol/batch-data.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import type { StateCounts } from "../../core/protocol/commitment.ts";
import { bytesToHex } from "../../core/protocol/hex.ts";
import { batchRoot, manifestRoot } from "../../core/protocol/manifest.ts";
import { proveVault } from "../../core/protocol/proof.ts";
import { mirroredStateTypedData } from "../../core/protocol/typed-data.ts";
import { account, CHAIN_ID, openGasChain } from "./chain.ts";
import { measurement, type Section } from "./report.ts";

const SOURCE = { chainId: 1n, contract: account("settlement").address, engineVersion: 5 } as const;
const SOURCE_OF = { sourceChainId: SOURCE.chainId, sourceContract: SOURCE.contract };
const VAULTS = 1_024;
/** Rollup batches of the source after each step. */
const STEPS = [1, 2, 1_000] as const;

export async function mirrorSection(): Promise<Section> {
  const chain = await openGasChain();
  const { operator: owner, committee } = chain;
  const signers = { committee: committee.members, threshold: committee.threshold };
  const mirror = await chain.viem.deployContract("StateMirror", [
    { admin: owner, ...SOURCE_OF, ...signers, changeDelay: 0n, maturity: 0n },
  ]);
  const card = await chain.token("erc721", { symbol: "C", uri: "" }, mirror.address);
  const batch = batchOf(owner, card.type);
  const history = await historyOf(batch);

  const advance = async (from: StateCounts, countRollup: number) => {
    const growth = history.growth(from, "zk-rollup", countRollup);
    const { commitment, ...roots } = history.stateAt(from);
    const state = {
      ...from,
      countRollup,
      commitment: history.stateAt({ ...from, countRollup }).commitment,
    };
    const before = { ...roots, countValidium: 0n, countRollup: BigInt(from.countRollup) };
    const grown = { ...growth, mode: MODE_VALUE["zk-rollup"], count: BigInt(countRollup) };
    const signed = { ...SOURCE_OF, ...state, epoch: 0n };
    const at = { chainId: CHAIN_ID, contract: mirror.address };
    const attestation = await chain.attest(mirroredStateTypedData(at, signed));
    return chain.gasOf(mirror.write.advance([before, grown, attestation]));
  };
  const [first, second, many] = STEPS;
  const measurements = [
    measurement(
      "first step ever, 1 batch",
      await advance({ countValidium: 0, countRollup: 0 }, first),
    ),
    measurement(
      "second step, 1 batch",
      await advance({ countValidium: 0, countRollup: first }, second),
    ),
    measurement(
      `third step, ${many - second} batches`,
      await advance({ countValidium: 0, countRollup: second }, many),
    ),
  ];
  const { siblings, vaultCount, dataHash, batchRoot } = history.batch("zk-rollup", 0, first);
  const imported = await chain.gasOf(
    mirror.write.importBatch([0n, 0n, { vaultCount, dataHash, batchRoot }, siblings]),
  );
  measurements.push(measurement("importing a batch", imported));

  const { acceptedAt } = await mirror.read.step([0n]);
  const header = { batchRoot, vaultCount, committedAt: acceptedAt, sequence: 0n };
  const withdraw = (slot: number) => {
    const vault = batch.vaults[slot];
    if (vault === undefined) throw new Error(`no vault in slot ${slot}`);
    const proven = provenVaultArguments({ ...proveVault(batch, vault), header });
    return chain.gasOf(mirror.write.withdraw([...proven, 1n, owner]));
  };
  await withdraw(0);
  measurements.push(
    measurement("ERC-721, owner calls, storage word shared, to a holder", await withdraw(1)),
  );
  return {
    title: "A mirror on another chain",
    method: `A step carries signatures of 3 of 5 and a proof that the new state extends the old one. Its gas does not grow with the
batches that it brings. A batch is imported once for all of its vaults, here ${VAULTS.toLocaleString("en")}.`,
    unit: "transaction",
    measurements,
  };
}

function batchOf(owner: Address, assetType: Hash) {
  const card = { chainId: CHAIN_ID, owner, assetType, amount: 1n };
  const slots = Array.from({ length: VAULTS }, (_, i) => ({
    ...card,
    mintingBlob: toHex(String(100_000 + i)),
  }));
  const vaults = placeVaults(slots, "zk-rollup", 0).filter((vault) => vault !== null);
  return {
    vaults,
    tree: new BatchTree(batchLeaves(wordBatch(slots), "zk-rollup", 0)),
    assets: [card],
  };
}

/** A source with this batch and many others after it. */
async function historyOf({ tree, assets }: ReturnType<typeof batchOf>): Promise<SourceHistory> {
  const first = batchRoot("calldata", manifestRoot(assets), bytesToHex(tree.root));
  const events = Array.from({ length: STEPS[2] }, (_, number): L1Event => {
    const place = { txHash: toHex(number, { size: 32 }), blockNumber: 1n, logIndex: number };
    const root = number === 0 ? first : toHex(number, { size: 32 });
    const header = {
      batchRoot: root,
      vaultCount: VAULTS,
      committedAt: 1n,
      sequence: BigInt(number),
    };
    const dataHash = toHex(2n ** 255n + BigInt(number));
    return {
      type: "batchCommitted",
      ...place,
      ...header,
      mode: "zk-rollup",
      batchNumber: number,
      dataHash,
    };
  });
  const source = {
    settlement: SOURCE,
    block: async () => null,
    finalizedBlockNumber: async () => 1n,
    events: async () => events,
  };
  const history = new SourceHistory(source, 1n);
  await history.follow();
  return history;
}
