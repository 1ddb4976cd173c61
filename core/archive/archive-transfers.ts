import { MintmarkError } from "../errors.ts";
import type { Address, Hash, VaultId } from "../model.ts";
import type { BatchHeader, L1Event, VaultContent } from "../ports.ts";
import { wordOf, ZERO_ADDRESS } from "../protocol/hex.ts";
import { type CountedMaking, type MadeVaultProof, proveMadeVault } from "../protocol/making.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import { SignerThread } from "../protocol/signers/signer-thread.ts";
import { type Transfer, transfersDigest } from "../protocol/transfer.ts";
import {
  type TransferGroup,
  type TransferOutput,
  transferOutputs,
} from "../protocol/transfer-data.ts";
import {
  type TransferableVault,
  type TransferFault,
  type TransferPowers,
  type TransferSession,
  transferFault,
  transferredVault,
} from "../protocol/transfer-rules.ts";
import {
  isMadeVaultId,
  packVaultId,
  unpackBatchVaultId,
  unpackVaultId,
} from "../protocol/vault.ts";
import { ArchiveReads } from "./archive-reads.ts";
import { chainProof, vaultIn } from "./derive.ts";
import type { Commit } from "./keys.ts";
import * as keys from "./keys.ts";

/**
 * Why a record moves nothing. `no_vault`: L1 has no vault with this id, or a left-out or void one.
 */
export type RecordFault = TransferFault | "no_vault";

/** A vault that a valid record made. Its proof begins with the minted vault. */
export interface OutputVault extends VaultContent {
  /** The minted vault. */
  readonly origin: VaultId;
  /** The vault that the record spends. */
  readonly spent: VaultId;
  /** Records since the mint, at most 8. */
  readonly hops: number;
}

/** The committed record that spends a vault. There is at most one for ever. */
export interface Spending {
  /** The record's first output: the slot of its leaf. */
  readonly outId: VaultId;
  /**
   * Null for a record that moves the vault. Otherwise its owner withdraws by refuting the record.
   */
  readonly fault: RecordFault | null;
}

/** A committed record that moves nothing. Members do not sign such records. */
export interface InvalidTransfer {
  readonly vaultId: VaultId;
  readonly outId: VaultId;
  readonly fault: RecordFault;
}

/** The facts of a commit that decide the verdict on its batch's records. */
export type TransferCommit = Pick<BatchHeader, "committedAt" | "sequence"> &
  Pick<Commit, "batchNumber"> & { readonly blockNumber?: bigint };

/** One record of a batch with its verdict. */
export interface JudgedRecord {
  readonly transfer: Transfer;
  readonly outputs: readonly TransferOutput[];
  /**
   * One signature, which can cover several records. `signer` is null when the signature is
   * nobody's.
   */
  readonly deadline: bigint;
  readonly digest: Hash;
  readonly signer: Address | null;
  /** Null when L1 has no such vault. */
  readonly vault: SpentVault | null;
  /**
   * The session's key that alone lets the record count; null when the owner has signed or approved
   * it.
   */
  readonly sessionKey: Address | null;
  /** Last second of that session. */
  readonly sessionUntil: bigint | null;
  readonly fault: RecordFault | null;
}

/** A vault that a record spends, with everything that the rule asks for. */
interface SpentVault extends TransferableVault {
  readonly content: VaultContent;
  readonly origin: VaultId;
}

/** Changes of the store; null deletes a key. */
export type Changes = Map<string, string | null>;

/** The changes that a batch of transfers makes, and its records that move nothing. */
export interface TransferChanges {
  readonly changes: Changes;
  readonly invalid: readonly InvalidTransfer[];
}

/**
 * Vaults and their transfers in an archive. Judges the records of committed transfer batches
 * exactly as L1 does, and keeps the owner of each vault since. A verdict can be made late, because
 * powers count by their times, a voided mint by its place among the commits, and a vault that a
 * valid record spends pays nothing. A mint that is voided after a record leaves the verdict as it
 * was: L1 then pays nothing more, and what it has paid stays paid.
 */
export abstract class ArchiveTransfers extends ArchiveReads {
  protected readonly signers = new SignerThread();

  /**
   * Throws `vault_not_found`, `vault_void`; `proof_not_ready` without the batch's data, or that of
   * a vault behind it.
   */
  async vaultContent(vaultId: VaultId): Promise<VaultContent> {
    const output = await this.output(vaultId);
    if (output !== null && output.owner !== ZERO_ADDRESS) {
      const { chainId, owner, assetType, amount, blob } = output;
      return { vaultId, chainId, owner, assetType, amount, blob };
    }
    if (isMadeVaultId(vaultId)) return (await this.#provenMade(vaultId)).vault;
    const commit = await this.#commitOf(vaultId);
    const batch = await this.derived(commit);
    if (batch.transfers !== null && (await (await this.#waitingIn(commit))(vaultId))) {
      const name = `${commit.mode}-${commit.batchNumber}`;
      const detail = `The data of vaults that ${name} transfers is missing; rebuild with a member that has it.`;
      throw new MintmarkError("proof_not_ready", detail);
    }
    const fault = await this.text(keys.vaultKey("unpayable", vaultId));
    if (fault !== undefined)
      throw new MintmarkError("vault_void", `L1 never pays the vault: ${fault}.`);
    return vaultIn(batch, vaultId);
  }

  /**
   * The vault's proof with the transfers since the mint, verified. Throws as {@link
   * Archive.vaultContent}.
   */
  async vaultProof(vaultId: VaultId): Promise<BatchVaultProof & { readonly header: BatchHeader }> {
    await this.vaultContent(vaultId);
    const provenMade = (made: VaultId) => this.#provenMade(made);
    return chainProof(vaultId, this.kzg, provenMade, async (mode, batchNumber) => {
      const commit = await this.#commitOf(packVaultId({ mode, batchNumber, slot: 0 }));
      return { commit, batch: await this.derived(commit) };
    });
  }

  /** The proof of a vault that L1 made by itself. Throws `vault_not_found`. */
  async #provenMade(vaultId: VaultId): Promise<MadeVaultProof> {
    const { batchNumber, slot } = unpackVaultId(vaultId);
    const making = await this.making(batchNumber);
    if (making === null || slot >= making.vaults.length)
      throw new MintmarkError(
        "vault_not_found",
        `L1 has not made vault ${vaultId}, or not finally.`,
      );
    return proveMadeVault(making, slot);
  }

  async #commitOf(vaultId: VaultId): Promise<Commit> {
    const { mode, batchNumber } = unpackBatchVaultId(vaultId);
    const commit = await this.commit(mode, batchNumber);
    if (commit === null)
      throw new MintmarkError("vault_not_found", `L1 has no batch ${mode}-${batchNumber} yet.`);
    return commit;
  }

  /**
   * The changes that a committed batch makes. A record waits while the data of its vault is
   * missing, and the others do not wait for it: otherwise one vault with withheld data would keep
   * everybody in the batch from their proofs.
   */
  protected async transferChanges(
    groups: readonly TransferGroup[],
    commit: TransferCommit,
  ): Promise<TransferChanges> {
    const { judged, isWhole } = await this.judge(groups, commit);
    const changes: Changes = new Map();
    changes.set(keys.batchKey("unjudged", "zk-rollup", commit.batchNumber), isWhole ? null : "");
    const invalid: InvalidTransfer[] = [];
    for (const { transfer, outputs, vault, fault } of judged) {
      const { vaultId } = transfer;
      if ((await this.spending(vaultId)) !== null) continue;
      const { outId } = outputs[0]!;
      changes.set(keys.vaultKey("spent", vaultId), keys.toText({ outId, fault }));
      if (fault !== null || vault === null) {
        changes.set(keys.vaultKey("invalid", outId), keys.toText({ vaultId, fault }));
        invalid.push({ vaultId, outId, fault: fault ?? "no_vault" });
        continue;
      }
      changes.set(keys.ownerKey(vault.owner, vaultId), null);
      for (const output of outputs) {
        const made = transferredVault(vault, { transfer }, output);
        const { chainId, assetType, blob } = vault.content;
        const { owner, amount, hops } = made;
        const { origin } = vault;
        const record = { origin, spent: vaultId, owner, amount, hops, chainId, assetType, blob };
        changes.set(keys.vaultKey("output", output.outId), keys.toText(record));
        if (owner !== ZERO_ADDRESS) changes.set(keys.ownerKey(owner, output.outId), "");
      }
    }
    return { changes, invalid };
  }

  /**
   * The verdicts over records as a commit would get them, in data order, without the records that
   * wait for data.
   */
  async judge(groups: readonly TransferGroup[], commit: TransferCommit) {
    const ids = groups.flatMap(({ transfers }) => transfers.map(({ vaultId }) => vaultId));
    const { found: vaults, waiting } = await this.#vaults(ids, commit);
    const outputs = Map.groupBy(
      transferOutputs(groups, commit.batchNumber),
      ({ transfer }) => transfer,
    );
    const judged: JudgedRecord[] = [];
    const digests = groups.map((group) => transfersDigest(this.settlement, group));
    const signers = await Promise.all(
      groups.map(({ signature }, i) => this.signers.recover(digests[i] as Hash, signature)),
    );
    for (const [i, { transfers, deadline }] of groups.entries()) {
      const [digest, signer] = [digests[i] as Hash, signers[i] as Address | null];
      for (const transfer of transfers) {
        if (waiting.has(transfer.vaultId)) continue;
        const vault = vaults.get(transfer.vaultId) ?? null;
        const verdict =
          vault === null
            ? ({ fault: "no_vault", sessionKey: null, sessionUntil: null } as const)
            : await this.#verdict(vault, transfer, { deadline, digest, signer }, commit);
        judged.push({
          transfer,
          outputs: outputs.get(transfer) ?? [],
          deadline,
          digest,
          signer,
          vault,
          ...verdict,
        });
      }
    }
    return { judged, isWhole: waiting.size === 0 };
  }

  async #verdict(
    vault: SpentVault,
    transfer: Transfer,
    {
      deadline,
      digest,
      signer,
    }: { readonly deadline: bigint; readonly digest: Hash; readonly signer: Address | null },
    { committedAt }: TransferCommit,
  ): Promise<
    Pick<JudgedRecord, "sessionKey" | "sessionUntil"> & { readonly fault: TransferFault | null }
  > {
    const { owner } = vault;
    const session = signer === null || signer === owner ? null : await this.#session(owner, signer);
    const { approvedAt, cancelledAt } = await this.#approval(owner, digest);
    const signerCancelledAt =
      signer === null ? 0n : (await this.#approval(signer, digest)).cancelledAt;
    const powers = { signer, session, approvedAt, cancelledAt, signerCancelledAt };
    const fault = transferFault(vault, { transfer, deadline, committedAt }, powers);
    const needed = approvedAt === 0n ? session : null;
    return {
      fault,
      sessionKey: needed === null ? null : signer,
      sessionUntil: needed?.until ?? null,
    };
  }

  /**
   * The vaults that L1 had before the commit, and the ids whose data is missing. Reads each batch
   * once.
   */
  async #vaults(ids: readonly VaultId[], { sequence, blockNumber }: TransferCommit) {
    const found = new Map<VaultId, SpentVault>();
    const waiting = new Set<VaultId>();
    const byBatch = Map.groupBy(ids, (id) => id >> 20n);
    for (const same of byBatch.values()) {
      const { mode, batchNumber } = unpackVaultId(same[0] as VaultId);
      if (mode === "made") {
        const making = await this.making(batchNumber);
        // L1 took the record, so it has the making, and the node has left it out.
        if (making === null) for (const id of same) waiting.add(id);
        else
          for (const vault of await this.#madeVaults(making, same, { sequence, blockNumber }))
            found.set(vault.vaultId, vault);
        continue;
      }
      const commit = await this.commit(mode, batchNumber);
      // Its id may become a vault later, which the record cannot spend.
      if (commit === null || commit.sequence >= sequence) continue;
      const known: VaultId[] = [];
      const isWaiting = await this.#waitingIn(commit);
      for (const id of same) {
        if (await isWaiting(id)) waiting.add(id);
        else known.push(id);
      }
      if (known.length === 0) continue;
      for (const vault of await this.#vaultsIn(commit, known, { sequence, blockNumber }))
        found.set(vault.vaultId, vault);
    }
    return { found, waiting };
  }

  /**
   * Whether data is missing without which nobody knows what a committed batch has under an id of
   * its own.
   */
  async #waitingIn(commit: Commit): Promise<(vaultId: VaultId) => Promise<boolean>> {
    const { mode, batchNumber } = commit;
    if (!(await this.holds(mode, batchNumber))) return async () => true;
    if (mode !== "zk-rollup" || !(await this.#has(keys.batchKey("unjudged", mode, batchNumber))))
      return async () => false;
    const { transfers } = await this.derived(commit);
    const outputs = transferOutputs(transfers ?? [], batchNumber);
    return async (vaultId) => {
      const output = outputs[unpackBatchVaultId(vaultId).slot];
      return output !== undefined && (await this.spending(output.transfer.vaultId)) === null;
    };
  }

  /** The vaults of a making that L1 had before a commit. */
  async #madeVaults(
    made: CountedMaking,
    ids: readonly VaultId[],
    before: Pick<TransferCommit, "sequence" | "blockNumber">,
  ): Promise<SpentVault[]> {
    if (made.sequence > before.sequence) return [];
    const contents = ids
      .filter((id) => unpackVaultId(id).slot < made.vaults.length)
      .map((id) => proveMadeVault(made, unpackVaultId(id).slot).vault);
    return this.#spentVaults(contents, made.sequence, before);
  }

  async #vaultsIn(
    commit: Commit,
    ids: readonly VaultId[],
    before: Pick<TransferCommit, "sequence" | "blockNumber">,
  ): Promise<SpentVault[]> {
    const outputs = (await Promise.all(ids.map((id) => this.output(id)))).filter(
      (output) => output !== null,
    );
    const vaults: (VaultContent | OutputVault)[] =
      outputs.length > 0 ? outputs : await this.vaultsAt(commit, ids);
    return this.#spentVaults(vaults, commit.sequence, before);
  }

  /** @param bornAt - the number of commits before the vaults */
  async #spentVaults(
    vaults: readonly (VaultContent | OutputVault)[],
    bornAt: bigint,
    { sequence, blockNumber: notBefore = 0n }: Pick<TransferCommit, "sequence" | "blockNumber">,
  ): Promise<SpentVault[]> {
    await this.assets.learn(vaults, notBefore);
    return Promise.all(
      vaults.map(async (content): Promise<SpentVault> => {
        const { vaultId, owner, amount, chainId, assetType } = content;
        const registration = this.assets.known(chainId, assetType);
        const isOutput = "origin" in content;
        // Only mints after the registration count. An output's origin was judged before.
        const counts = registration !== null && (isOutput || bornAt >= registration.since);
        return {
          vaultId,
          owner: owner.toLowerCase() as Address,
          amount,
          withdrawn: await this.#withdrawnBefore(
            vaultId,
            isOutput ? content.origin : vaultId,
            sequence,
          ),
          standard: registration?.standard ?? "erc20",
          assetType,
          transferable: counts && (await this.#has(keys.transferableKey(chainId, assetType))),
          hops: isOutput ? content.hops : 0,
          content,
          origin: isOutput ? content.origin : vaultId,
        };
      }),
    );
  }

  /** The session of an owner with a key, as L1 keeps it; null for none. */
  #session(owner: Address, key: Address): Promise<TransferSession | null> {
    return this.#read(keys.sessionKey(owner, key));
  }

  /** When an account approved and cancelled a digest; 0 for never. */
  async #approval(
    owner: Address,
    digest: Hash,
  ): Promise<Pick<TransferPowers, "approvedAt" | "cancelledAt">> {
    const stored = await this.#read<Partial<TransferPowers>>(keys.approvedKey(owner, digest));
    return { approvedAt: stored?.approvedAt ?? 0n, cancelledAt: stored?.cancelledAt ?? 0n };
  }

  /**
   * The vault that a valid record made; null for any other id. One that was redeemed belongs to the
   * zero address.
   */
  async output(vaultId: VaultId): Promise<OutputVault | null> {
    const stored = await this.#read<Omit<OutputVault, "vaultId">>(keys.vaultKey("output", vaultId));
    return stored && { vaultId, ...stored };
  }

  /** Units of a vault that L1 has paid, or voided with the mint. Only ERC-721 mints are voided. */
  async withdrawn(vaultId: VaultId): Promise<bigint> {
    const origin = (await this.output(vaultId))?.origin ?? vaultId;
    return this.#withdrawnBefore(vaultId, origin, null);
  }

  /** Units that L1 has paid, or voided within so many commits; null counts every voided mint. */
  async #withdrawnBefore(vaultId: VaultId, origin: VaultId, commits: bigint | null) {
    const paid = await this.paid(vaultId);
    const voided = await this.text(keys.vaultKey("voided", origin));
    if (paid > 0n || voided === undefined) return paid;
    return commits === null || BigInt(voided) <= commits ? 1n : 0n;
  }

  /**
   * The vault that holds an ERC-721 token after all its transfers; a redeemed one is nobody's.
   */
  async tipOf(minted: VaultId): Promise<VaultId> {
    let tip = minted;
    for (let spent = await this.spending(tip); spent?.fault === null; ) {
      tip = spent.outId;
      spent = await this.spending(tip);
    }
    return tip;
  }

  /** The committed record that spends a vault, valid or not; null while there is none. */
  spending(vaultId: VaultId): Promise<Spending | null> {
    return this.#read(keys.vaultKey("spent", vaultId));
  }

  /** The committed records that move nothing, by their first output. */
  async *invalidTransfers(): AsyncGenerator<InvalidTransfer> {
    for await (const [key, stored] of this.store.iterator<string, string>(keys.within("invalid/")))
      yield {
        outId: keys.vaultIdOf(key),
        ...(keys.fromText(stored) as Omit<InvalidTransfer, "outId">),
      };
  }

  /**
   * The changes by an event that gives or takes a power; none by other events. Repeats change
   * nothing.
   */
  protected async powerChanges(event: L1Event): Promise<Changes> {
    const changed = (key: string, power: object): Changes => new Map([[key, keys.toText(power)]]);
    switch (event.type) {
      case "assetTransferable":
        return new Map([[keys.transferableKey(event.chainId, event.assetType), ""]]);
      case "transfersApproved":
      case "transfersCancelled": {
        const { owner, digest } = event;
        const time =
          "approvedAt" in event
            ? { approvedAt: event.approvedAt }
            : { cancelledAt: event.cancelledAt };
        return changed(keys.approvedKey(owner, digest), {
          ...(await this.#approval(owner, digest)),
          ...time,
        });
      }
      case "sessionAuthorized": {
        const { owner, key, authorizedAt, until, limit, assetType } = event;
        const { revokedAt } = (await this.#session(owner, key)) ?? NO_SESSION;
        return changed(keys.sessionKey(owner, key), {
          authorizedAt,
          until,
          revokedAt,
          limit,
          assetType,
        });
      }
      case "sessionRevoked": {
        const { owner, key, revokedAt } = event;
        const session = (await this.#session(owner, key)) ?? NO_SESSION;
        return changed(keys.sessionKey(owner, key), { ...session, revokedAt });
      }
      default:
        return new Map();
    }
  }

  async #read<T>(key: string): Promise<T | null> {
    return keys.fromText(await this.text(key));
  }

  #has(key: string): Promise<boolean> {
    return this.store.has(key, keys.TEXT);
  }
}

/** A key that was revoked first can never have a session. */
const NO_SESSION = { authorizedAt: 0n, until: 0n, limit: 0n, assetType: wordOf(0), revokedAt: 0n };
