import * as protocol from "../../../core/protocol/verifier.ts";
import { brief, counted } from "../shared/format.ts";
import { type Fact, Facts, LongTable } from "../shared/parts.tsx";
import { type Batch, type History, type Proof, readBatchData, readHistory } from "./api.ts";
import { type Check, judged, keptByL1 } from "./checks.tsx";

export function fateOf(to: string): string {
  return protocol.isRedemption({ to: to as protocol.Hex }) ? "redeemed" : `given to ${brief(to)}`;
}

export function transferCheck({ batchRoot, batchNumber }: Batch, data: Uint8Array): Check {
  const test = () => {
    const leaves = protocol.transferLeaves(protocol.decodeTransferData(data), batchNumber);
    const root = protocol.transferBatchRoot(
      protocol.bytesToHex(new protocol.BatchTree(leaves).root),
    );
    return judged(
      root === batchRoot,
      `${counted(leaves.length / 32, "leaf", "leaves")} hashed here: ${root}`,
    );
  };
  return ["The signed transfers in the data give the batch's root.", test];
}

export function TransferTable({ data, batchNumber }: { data: Uint8Array; batchNumber: number }) {
  const outputs = protocol.transferOutputs(protocol.decodeTransferData(data), batchNumber);
  const made = outputs.map(({ part, outId, transfer: { vaultId, to, amount } }) => {
    if (part === protocol.TransferPart.change)
      return { vaultId, outId, units: "what is left", receiver: "kept by the giver" };
    const isGone = protocol.isRedemption({ to });
    const units = amount === 0n ? "all" : amount.toLocaleString("en");
    return {
      vaultId,
      outId: isGone ? null : outId,
      units,
      receiver: isGone ? "redeemed" : <code>{to}</code>,
    };
  });
  return (
    <LongTable
      label="Transfers"
      entries={made}
      columns={[
        ["Taken vault", ({ vaultId }) => <VaultLink of={vaultId} />],
        ["New vault", ({ outId }) => (outId === null ? "burnt" : <VaultLink of={outId} />)],
        ["Units", ({ units }) => units],
        ["Receiver", ({ receiver }) => receiver],
      ]}
    />
  );
}

/** Checks of the transfers that lead from the minted vault to the shown one. */
export function hopChecks({ vault, hops }: Proof): Check[] {
  return hops.flatMap((hop, i): Check[] => {
    const from = hops[i - 1]?.outId ?? vault.vaultId;
    const name = hops.length === 1 ? "the transfer" : `transfer ${i + 1}`;
    return [
      [
        `The batch's root holds ${name}.`,
        () =>
          judged(
            protocol.verifyHop(from, hop as protocol.ProvenHop),
            `vault ${from} to vault ${hop.outId}`,
          ),
      ],
      [
        `L1 keeps the batch of ${name}.`,
        () => keptByL1(hop.header, protocol.unpackVaultId(hop.outId)),
      ],
    ];
  });
}

/** Where a vault comes from and what took it; nothing for a vault that was only minted. */
export function HistoryFacts({ of: { before, after } }: { of: History }) {
  if (before.length + after.length === 0) return null;
  const steps = before.map(
    (step, i): Fact => [
      i === 0 ? "Minted for" : `Then (${i})`,
      <Said key={i} step={step} isFirst={i === 0} />,
    ],
  );
  const fates = after.map(
    (step, i): Fact => [
      step.isChange ? "And" : i === 0 ? "Taken" : `Taken (${i})`,
      <Said key={i} step={step} />,
    ],
  );
  return (
    <>
      <h2>Transfers</h2>
      <p>{`${counted(before.length, "transfer")} since the mint, of ${protocol.MAX_TRANSFER_HOPS} at most.`}</p>
      <Facts of={[...steps, ...fates]} />
    </>
  );
}

function Said({ step, isFirst = false }: { step: History["before"][number]; isFirst?: boolean }) {
  const { from, to, isChange, newVaultId, amount, vaultId, status } = step;
  const units = amount === null ? "" : `${counted(amount, "unit")} `;
  return (
    <span>
      {isFirst && [
        <code key="from">{from}</code>,
        ", vault ",
        <VaultLink key="vault" of={vaultId} />,
        "; ",
      ]}
      {units}
      {isChange ? "kept by " : protocol.isRedemption({ to }) ? "redeemed by " : "given to "}
      <code>{protocol.isRedemption({ to }) || isChange ? from : to}</code>
      {newVaultId !== null && [", vault ", <VaultLink key="new" of={newVaultId} />]} ({status})
    </span>
  );
}

export function VaultLink({ of }: { of: bigint }) {
  return <a href={`#/vaults/${of}`}>{String(of)}</a>;
}

export type OwnTransfers = ReturnType<typeof ownTransfers>;

/** What transfers do to one owner's vaults, as the public data of the batches tell. */
export function ownTransfers(owner: string) {
  /** By vault that is taken: to whom it went, and the vault of the change. */
  const taken = new Map<bigint, { readonly to: string; readonly change: bigint | null }>();
  /**
   * The contents of vaults that transfers made, as the operator tells them. Those that L1 does not
   * count hold nothing.
   */
  const contentsOf = async (ids: readonly bigint[]) => {
    const read = await Promise.all(ids.map((vaultId) => readHistory(vaultId)));
    return read.flatMap(({ vault }) => vault ?? []);
  };
  return {
    /** What became of a vault; null while no transfer takes it. */
    fate(vaultId: bigint): string | null {
      const to = taken.get(vaultId)?.to;
      return to === undefined ? null : fateOf(to);
    },

    /** Reads a sealed batch of transfers. Returns the vaults that the owner got from others. */
    async read({ batchId, batchNumber }: Batch): Promise<protocol.VaultContent[]> {
      const outputs = protocol.transferOutputs(
        protocol.decodeTransferData(await readBatchData(batchId)),
        batchNumber,
      );
      for (const { part, outId, transfer } of outputs) {
        const change = part === protocol.TransferPart.change ? outId : null;
        taken.set(transfer.vaultId, { to: transfer.to, change });
      }
      const mine = outputs.filter(
        ({ part, transfer }) => part === protocol.TransferPart.receiver && transfer.to === owner,
      );
      return contentsOf(mine.map(({ outId }) => outId));
    },

    /** The vaults of change that the owner kept of these, and of those in turn. */
    async changesOf(vaults: readonly protocol.VaultContent[]): Promise<protocol.VaultContent[]> {
      const ids = vaults.flatMap(({ vaultId }) => taken.get(vaultId)?.change ?? []);
      if (ids.length === 0) return [];
      const kept = await contentsOf(ids);
      return [...kept, ...(await this.changesOf(kept))];
    },
  };
}
