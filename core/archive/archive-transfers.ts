import type { Address, Hash, VaultId } from "../model.ts";
import type { BatchHeader, L1Event, VaultContent } from "../ports.ts";
import { wordOf, ZERO_ADDRESS } from "../protocol/hex.ts";
import { type CountedMaking, proveMadeVault } from "../protocol/making.ts";
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
import { unpackVaultId } from "../protocol/vault.ts";
import type { ArchiveReads } from "./archive-reads.ts";
import type { ArchiveVaults, OutputVault, RecordFault } from "./archive-vaults.ts";
import type { Commit } from "./keys.ts";
import * as keys from "./keys.ts";
import type { ArchiveGround } from "./vault-index.ts";

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
export type ArchiveChanges = Map<string, string | null>;

/** The changes that a batch of transfers makes, and its records that move nothing. */
export interface TransferChanges {
  readonly changes: ArchiveChanges;
  readonly invalid: readonly InvalidTransfer[];
}

export type ArchiveTransfers = ReturnType<typeof archiveTransfers>;

/**
 * Transfers in an archive. Judges the records of committed transfer batches exactly as L1 does, and
 * keeps the owner of each vault since. A verdict can be made late, because powers count by their
 * times, a voided mint by its place among the commits, and a vault that a valid record spends pays
 * nothing. A mint that is voided after a record leaves the verdict as it was: L1 then pays nothing
 * more, and what it has paid stays paid.
 */
export function archiveTransfers(
  { store, settlement, assets }: ArchiveGround,
  reads: ArchiveReads,
  vaults: ArchiveVaults,
) {
  const thread = new SignerThread();

  const transfers = {
    /**
     * The changes that a committed batch makes. A record waits while the data of its vault is
     * missing, and the others do not wait for it: otherwise one vault with withheld data would keep
     * everybody in the batch from their proofs.
     */
    async transferChanges(
      groups: readonly TransferGroup[],
      commit: TransferCommit,
    ): Promise<TransferChanges> {
      const { judged, waiting } = await transfers.judge(groups, commit);
      const changes: ArchiveChanges = new Map();
      changes.set(
        keys.batchKey("unjudged", "zk-rollup", commit.batchNumber),
        waiting.size === 0 ? null : "",
      );
      const invalid: InvalidTransfer[] = [];
      for (const { transfer, outputs, vault, fault } of judged) {
        const { vaultId } = transfer;
        if ((await vaults.spending(vaultId)) !== null) continue;
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
          const { chainId, assetType, mintingBlob } = vault.content;
          const { owner, amount, hops } = made;
          const { origin } = vault;
          const record = {
            origin,
            spent: vaultId,
            owner,
            amount,
            hops,
            chainId,
            assetType,
            mintingBlob,
          };
          changes.set(keys.vaultKey("output", output.outId), keys.toText(record));
          if (owner !== ZERO_ADDRESS) changes.set(keys.ownerKey(owner, output.outId), "");
        }
      }
      return { changes, invalid };
    },

    /**
     * The verdicts over records as a commit would get them, in data order, without the records that
     * wait for data.
     */
    async judge(groups: readonly TransferGroup[], commit: TransferCommit) {
      const ids = groups.flatMap(({ transfers }) => transfers.map(({ vaultId }) => vaultId));
      const { found: vaults, waiting } = await vaultsBefore(ids, commit);
      const outputs = Map.groupBy(
        transferOutputs(groups, commit.batchNumber),
        ({ transfer }) => transfer,
      );
      const judged: JudgedRecord[] = [];
      const digests = groups.map((group) => transfersDigest(settlement, group));
      const signers = await Promise.all(
        groups.map(({ signature }, i) => thread.recover(digests[i] as Hash, signature)),
      );
      for (const [i, { transfers, deadline }] of groups.entries()) {
        const [digest, signer] = [digests[i] as Hash, signers[i] as Address | null];
        for (const transfer of transfers) {
          if (waiting.has(transfer.vaultId)) continue;
          const vault = vaults.get(transfer.vaultId) ?? null;
          const verdict =
            vault === null
              ? ({ fault: "no_vault", sessionKey: null, sessionUntil: null } as const)
              : await verdictOn(vault, transfer, { deadline, digest, signer }, commit);
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
      return { judged, waiting };
    },

    /** The committed records that move nothing, by their first output. */
    async *invalidTransfers(): AsyncGenerator<InvalidTransfer> {
      for await (const [key, stored] of store.iterator<string, string>(keys.within("invalid/")))
        yield {
          outId: keys.vaultIdOf(key),
          ...(keys.fromText(stored) as Omit<InvalidTransfer, "outId">),
        };
    },

    /**
     * The changes by an event that gives or takes a power; none by other events. Repeats change
     * nothing.
     */
    async powerChanges(event: L1Event): Promise<ArchiveChanges> {
      const changed = (key: string, power: object): ArchiveChanges =>
        new Map([[key, keys.toText(power)]]);
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
            ...(await approvalOf(owner, digest)),
            ...time,
          });
        }
        case "sessionAuthorized": {
          const { owner, key, authorizedAt, until, limit, assetType } = event;
          const { revokedAt } = (await sessionOf(owner, key)) ?? NO_SESSION;
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
          const session = (await sessionOf(owner, key)) ?? NO_SESSION;
          return changed(keys.sessionKey(owner, key), { ...session, revokedAt });
        }
        default:
          return new Map();
      }
    },

    thread,
  };
  return transfers;

  async function verdictOn(
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
    const session = signer === null || signer === owner ? null : await sessionOf(owner, signer);
    const { approvedAt, cancelledAt } = await approvalOf(owner, digest);
    const signerCancelledAt = signer === null ? 0n : (await approvalOf(signer, digest)).cancelledAt;
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
  async function vaultsBefore(ids: readonly VaultId[], { sequence, blockNumber }: TransferCommit) {
    const found = new Map<VaultId, SpentVault>();
    const waiting = new Set<VaultId>();
    const byBatch = Map.groupBy(ids, (id) => id >> 20n);
    for (const same of byBatch.values()) {
      const { mode, batchNumber } = unpackVaultId(same[0] as VaultId);
      if (mode === "made") {
        const making = await reads.making(batchNumber);
        // L1 took the record, so it has the making, and the node has left it out.
        if (making === null) for (const id of same) waiting.add(id);
        else
          for (const vault of await madeVaults(making, same, { sequence, blockNumber }))
            found.set(vault.vaultId, vault);
        continue;
      }
      const commit = await reads.commit(mode, batchNumber);
      // Its id may become a vault later, which the record cannot spend.
      if (commit === null || commit.sequence >= sequence) continue;
      const known: VaultId[] = [];
      const isWaiting = await vaults.waitingIn(commit);
      for (const id of same) {
        if (await isWaiting(id)) waiting.add(id);
        else known.push(id);
      }
      if (known.length === 0) continue;
      for (const vault of await vaultsIn(commit, known, { sequence, blockNumber }))
        found.set(vault.vaultId, vault);
    }
    return { found, waiting };
  }

  /** The vaults of a making that L1 had before a commit. */
  async function madeVaults(
    made: CountedMaking,
    ids: readonly VaultId[],
    before: Pick<TransferCommit, "sequence" | "blockNumber">,
  ): Promise<SpentVault[]> {
    if (made.sequence > before.sequence) return [];
    const contents = ids
      .filter((id) => unpackVaultId(id).slot < made.vaults.length)
      .map((id) => proveMadeVault(made, unpackVaultId(id).slot).vault);
    return spentVaults(contents, made.sequence, before);
  }

  async function vaultsIn(
    commit: Commit,
    ids: readonly VaultId[],
    before: Pick<TransferCommit, "sequence" | "blockNumber">,
  ): Promise<SpentVault[]> {
    const outputs = (await Promise.all(ids.map((id) => vaults.output(id)))).filter(
      (output) => output !== null,
    );
    const contents: (VaultContent | OutputVault)[] =
      outputs.length > 0 ? outputs : await reads.vaultsAt(commit, ids);
    return spentVaults(contents, commit.sequence, before);
  }

  /** @param bornAt - the number of commits before the vaults */
  async function spentVaults(
    contents: readonly (VaultContent | OutputVault)[],
    bornAt: bigint,
    { sequence, blockNumber: notBefore = 0n }: Pick<TransferCommit, "sequence" | "blockNumber">,
  ): Promise<SpentVault[]> {
    await assets.learn(contents, notBefore);
    return Promise.all(
      contents.map(async (content): Promise<SpentVault> => {
        const { vaultId, owner, amount, chainId, assetType } = content;
        const registration = assets.known(chainId, assetType);
        const isOutput = "origin" in content;
        // Only mints after the registration count. An output's origin was judged before.
        const counts = registration !== null && (isOutput || bornAt >= registration.since);
        return {
          vaultId,
          owner: owner.toLowerCase() as Address,
          amount,
          withdrawn: await vaults.withdrawnBefore(
            vaultId,
            isOutput ? content.origin : vaultId,
            sequence,
          ),
          standard: registration?.standard ?? "erc20",
          assetType,
          transferable: counts && (await reads.has(keys.transferableKey(chainId, assetType))),
          hops: isOutput ? content.hops : 0,
          content,
          origin: isOutput ? content.origin : vaultId,
        };
      }),
    );
  }

  /** The session of an owner with a key, as L1 keeps it; null for none. */
  function sessionOf(owner: Address, key: Address): Promise<TransferSession | null> {
    return reads.record(keys.sessionKey(owner, key));
  }

  /** When an account approved and cancelled a digest; 0 for never. */
  async function approvalOf(
    owner: Address,
    digest: Hash,
  ): Promise<Pick<TransferPowers, "approvedAt" | "cancelledAt">> {
    const stored = await reads.record<Partial<TransferPowers>>(keys.approvedKey(owner, digest));
    return { approvedAt: stored?.approvedAt ?? 0n, cancelledAt: stored?.cancelledAt ?? 0n };
  }
}

/** A key that was revoked first can never have a session. */
const NO_SESSION = { authorizedAt: 0n, until: 0n, limit: 0n, assetType: wordOf(0), revokedAt: 0n };
