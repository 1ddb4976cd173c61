import {
  BatchTree,
  batchHeaderHash,
  bytesToHex,
  decodeTransferData,
  type Hex,
  isRedemption,
  MAX_TRANSFER_HOPS,
  type ProvenHop,
  TransferPart,
  transferBatchRoot,
  transferLeaves,
  transferOutputs,
  unpackVaultId,
  type VaultContent,
  verifyHop,
} from "../../../core/protocol/verifier.ts";
import { brief, counted } from "../shared/format.ts";
import { type Batch, type History, type Proof, readBatchData, readHistory, type Step } from "./api.ts";
import type { Check } from "./checks.ts";
import { type Child, code, el, facts, link, tableHead } from "./dom.ts";
import { l1, sourceName } from "./source.ts";

/** What a transfer has made of a vault, in words. */
export function fateOf(to: string): string {
  return isRedemption({ to: to as Hex }) ? "redeemed" : `given to ${brief(to)}`;
}

/** Checks that the data of a batch of transfers give its root. */
export function transferChecks({ batchRoot, batchNumber }: Batch, data: Uint8Array): Check[] {
  return [
    {
      claim: "The signed transfers in the data give the batch's root.",
      async test() {
        const leaves = transferLeaves(decodeTransferData(data), batchNumber);
        const root = transferBatchRoot(bytesToHex(new BatchTree(leaves).root));
        const count = counted(leaves.length / 32, "leaf", "leaves");
        return [root === batchRoot ? "holds" : "fails", `${count} hashed here: ${root}`];
      },
    },
  ];
}

/** The transfers of a batch as a table. */
export function transferTable(data: Uint8Array, batchNumber: number): HTMLElement {
  const made = transferOutputs(decodeTransferData(data), batchNumber);
  const rows = made.map(({ outId, part, transfer }) => {
    const isKept = part === TransferPart.change;
    const gone = !isKept && isRedemption(transfer);
    const cells: Child[] = [
      vaultLink(String(transfer.vaultId)),
      gone ? "burnt" : vaultLink(String(outId)),
      isKept ? "what is left" : transfer.amount === 0n ? "all" : transfer.amount.toLocaleString(),
      isKept ? "kept by the giver" : gone ? "redeemed" : code(transfer.to),
    ];
    return el("tr", {}, ...cells.map((cell) => el("td", {}, cell)));
  });
  const head = tableHead(["Taken vault", "New vault", "Units", "Receiver"]);
  return el("div", { class: "table" }, el("table", {}, head, el("tbody", {}, ...rows)));
}

/** Checks of the transfers that lead from the minted vault to the shown one. */
export function hopChecks({ vault, hops }: Proof): Check[] {
  return hops.flatMap((hop, i) => {
    const from = hops[i - 1]?.outId ?? vault.vaultId;
    const name = hops.length === 1 ? "the transfer" : `transfer ${i + 1}`;
    return [
      {
        claim: `The batch's root holds ${name}.`,
        test: async () => [verifyHop(from, hop) ? "holds" : "fails", `vault ${from} to vault ${hop.outId}`],
      },
      { claim: `L1 keeps the batch of ${name}.`, test: () => keptByL1(hop) },
    ] as const;
  });
}

async function keptByL1({ header, outId }: ProvenHop): Promise<readonly ["holds" | "fails" | "open", string]> {
  if (header.committedAt === 0n) return ["open", "L1 has not committed the batch yet."];
  const contract = await l1();
  if (contract === null) return ["open", "Choose below how to read L1."];
  const { mode, batchNumber } = unpackVaultId(outId);
  const kept = await contract.batchHeaderHash(mode, batchNumber);
  return [batchHeaderHash(header) === kept ? "holds" : "fails", `${kept}, says ${sourceName()}`];
}

/** Where a vault comes from and what took it; nothing for a vault that was only minted. */
export function historyFacts({ before, after }: History): Node[] {
  if (before.length + after.length === 0) return [];
  const steps = before.map(
    (step, i) => [i === 0 ? "Minted for" : "Then", said(step, i === 0 ? step.from : null)] as const,
  );
  const fates = after.map((step) => [step.isChange ? "And" : "Taken", said(step, null)] as const);
  return [
    el("h2", {}, "Transfers"),
    el("p", {}, `${counted(before.length, "transfer")} since the mint, of ${MAX_TRANSFER_HOPS} at most.`),
    facts([...steps, ...fates]),
  ];
}

function said({ from, to, isChange, newVaultId, amount, vaultId, status }: Step, minted: Hex | null): HTMLElement {
  const units = amount === null ? "" : `${counted(BigInt(amount), "unit")} `;
  const how = isChange ? "kept by " : isRedemption({ to }) ? "redeemed by " : "given to ";
  const who = isRedemption({ to }) || isChange ? from : to;
  const where = newVaultId === null ? [] : [", vault ", vaultLink(newVaultId)];
  const start: Child[] = minted === null ? [] : [code(minted), ", vault ", vaultLink(vaultId), "; "];
  return el("span", {}, ...start, units, how, code(who), ...where, ` (${status})`);
}

function vaultLink(vaultId: string): HTMLElement {
  return link(`#/vaults/${vaultId}`, vaultId);
}

/** What transfers do to one owner's vaults, as the public data of the batches tell. */
export class OwnTransfers {
  readonly #owner: string;
  /** By vault that is taken: to whom it went, and the vault of the change. */
  readonly #taken = new Map<bigint, { readonly to: string; readonly change: bigint | null }>();
  readonly #made = new Set<bigint>();

  constructor(owner: string) {
    this.#owner = owner;
  }

  /** What became of a vault; null while no transfer takes it. */
  fate(vaultId: bigint): string | null {
    const taken = this.#taken.get(vaultId);
    return taken === undefined ? null : fateOf(taken.to);
  }

  /** Whether a transfer made the vault. */
  made(vaultId: bigint): boolean {
    return this.#made.has(vaultId);
  }

  /** Reads a sealed batch of transfers. Returns the vaults that the owner got from others. */
  async read({ batchId, batchNumber }: Batch): Promise<VaultContent[]> {
    const outputs = transferOutputs(decodeTransferData(await readBatchData(batchId)), batchNumber);
    for (const { part, outId, transfer } of outputs) {
      this.#made.add(outId);
      const change = part === TransferPart.change ? outId : null;
      this.#taken.set(transfer.vaultId, { to: transfer.to, change });
    }
    const mine = outputs.filter(({ part, transfer }) => part === TransferPart.payee && transfer.to === this.#owner);
    return this.#contents(mine.map(({ outId }) => outId));
  }

  /** The vaults of change that the owner kept of these, and of those in turn. */
  async changesOf(vaults: readonly VaultContent[]): Promise<VaultContent[]> {
    const ids = vaults.flatMap(({ vaultId }) => this.#taken.get(vaultId)?.change ?? []);
    if (ids.length === 0) return [];
    const kept = await this.#contents(ids);
    return [...kept, ...(await this.changesOf(kept))];
  }

  /** The contents of vaults that transfers made, as the operator tells them. Those that L1 does not count hold nothing. */
  async #contents(ids: readonly bigint[]): Promise<VaultContent[]> {
    const read = await Promise.all(ids.map((vaultId) => readHistory(String(vaultId))));
    return read.flatMap(({ vault }) => vault ?? []);
  }
}
