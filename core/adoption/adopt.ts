import type { WaitOptions } from "../abort.ts";
import { invalid, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { findUser } from "../ledger/user-records.ts";
import { type Address, MODES, type Mode, type Series, type Uuid } from "../model.ts";
import { assetType } from "../protocol/asset.ts";
import { hexToBytes, keccak256 } from "../protocol/hex.ts";
import { isRedemption } from "../protocol/transfer.ts";
import { decodeTransferData, isTransferData } from "../protocol/transfer-data.ts";
import { uuidText } from "../store/binary.ts";
import type { HolderIndexes } from "../store/vault-columns.ts";
import { createApplication } from "../tenants/applications.ts";
import { addAsset, type NewAsset } from "../tenants/assets.ts";
import { createUser } from "../tenants/users.ts";
import { orNull } from "../validate.ts";
import { placeOf } from "../vaults/vaults.ts";
import { type Adopted, adoptHistory } from "./adopted-batches.ts";
import { type AdoptedBatches, assetName, slotsIn } from "./incoming.ts";

/** The application that gets the vaults that no mint of this store made. */
const NAME = "Adopted from L1";

export interface AdoptingOptions extends WaitOptions {
  readonly assets?: readonly NewAsset[];
}

/**
 * Adopts L1's batches. Assets and users of owners come first, so a retry after a kill finds them.
 */
export async function adopt(
  context: EngineContext,
  adopted: readonly AdoptedBatches[],
  { assets = [], signal }: AdoptingOptions = {},
): Promise<Adopted> {
  const { ledger } = context;
  if (ledger.l1.divergence === null) throw invalid("The store is not diverged from L1.");
  const known = new Set(
    [...ledger.tenants.assets.durable.values()].filter(({ removed }) => !removed).map(assetName),
  );
  const unheld = new Set<string>();
  for (const asset of assets) {
    const name = nameOf(ledger, asset);
    if (known.has(name)) continue;
    // The store refuses a second asset of one contract.
    const added = await orNull("asset_exists", () => addAsset(context, asset, { signal }));
    (added === null ? unheld : known).add(name);
  }
  const held = adopted.map((of) => ({
    ...of,
    batches: of.batches.map((batch) => ({ ...batch, unheld })),
  }));
  const owners = ownersIn(ledger, held);
  const holders = new Map<Address, HolderIndexes>();
  const applicationId = owners.size === 0 ? "" : await applicationOf(context, signal);
  for (const ownerAddress of owners) {
    const user = { userId: userIdOf(ownerAddress), ownerAddress };
    const { userId } = await createUser(context, applicationId, user, signal);
    const { applicationIndex, userIndex } = await findUser(ledger, applicationId, userId);
    holders.set(ownerAddress, { applicationIndex, userIndex });
  }
  const holderOf = (owner: Address): HolderIndexes => {
    const holder = holders.get(owner);
    if (holder === undefined) throw new Error(`no user of ${owner}`);
    return holder;
  };
  return adoptHistory(context, held, holderOf, signal);
}

function nameOf(
  ledger: Ledger,
  { chainId, standard, contractAddress, quantum = 1n }: NewAsset,
): string {
  const type = assetType(standard, contractAddress, quantum);
  return assetName({ chainId: chainId ?? ledger.services.settlement.chainId, assetType: type });
}

/**
 * The owners that need a user; the settlement contract stands for void slots and unknown vaults.
 * Refuses what cannot be adopted before anything changes.
 */
function ownersIn(ledger: Ledger, adopted: readonly AdoptedBatches[]): ReadonlySet<Address> {
  const owners = new Set<Address>();
  const nobody = ledger.services.settlement.contract.toLowerCase() as Address;
  const vaultCounts = new Map<Series, (batchNumber: number) => number | undefined>(
    MODES.map((mode) => [mode, vaultCountsOf(ledger, adopted, mode)]),
  );
  for (const batch of adopted.flatMap(({ batches }) => batches)) {
    const { mode, batchNumber, data } = batch;
    if (isTransferData(mode, data)) {
      for (const transfer of decodeTransferData(data).flatMap(({ transfers }) => transfers)) {
        if (!isRedemption(transfer)) owners.add(transfer.to);
        const source = placeOf(transfer.vaultId);
        const isLater = source.mode === mode && source.batchNumber >= batchNumber;
        if (isLater || source.slot >= (vaultCounts.get(source.mode)?.(source.batchNumber) ?? 0))
          owners.add(nobody);
      }
      continue;
    }
    for (const slot of slotsIn(ledger, batch))
      owners.add(typeof slot === "string" ? nobody : (slot.entry.owner.toLowerCase() as Address));
  }
  // An empty slot is kept with the store's first asset.
  if (owners.has(nobody) && ledger.tenants.assets.durable.get(0) === undefined) {
    const detail = "This store has no asset. Add the assets of L1's history, then adopt again.";
    throw new MintmarkError("asset_not_found", detail);
  }
  return owners;
}

/** The number of vaults in each batch of L1's history; undefined for a batch that it lacks. */
function vaultCountsOf(ledger: Ledger, adopted: readonly AdoptedBatches[], mode: Mode) {
  const there = adopted.find((one) => one.mode === mode);
  const first = there?.first ?? Number.POSITIVE_INFINITY;
  return (batchNumber: number): number | undefined =>
    batchNumber < first
      ? ledger.batches.records[mode].durable.get(batchNumber)?.vaultCount
      : there?.batches[batchNumber - first]?.vaultCount;
}

async function applicationOf(context: EngineContext, signal?: AbortSignal): Promise<Uuid> {
  for (const { name, applicationId } of context.ledger.tenants.applications.durable.values())
    if (name === NAME) return applicationId;
  return (await createApplication(context, { name: NAME }, { signal })).applicationId;
}

/** One id for each owner: a UUID of version 8 from the owner's hash. */
function userIdOf(owner: Address): Uuid {
  const bytes = Buffer.from(keccak256(hexToBytes(owner)).subarray(0, 16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return uuidText(bytes);
}
