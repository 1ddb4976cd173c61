import { invalid, MintmarkError } from "../errors.ts";
import { type Address, MAX_AMOUNT, type VaultId } from "../model.ts";
import type { L1Receipt, L1Renewer, RenewedVault, WithdrawalCall } from "../ports.ts";
import { ZERO_ADDRESS } from "../protocol/hex.ts";
import { MAX_BATCH_ASSETS } from "../protocol/manifest.ts";
import { tipIdOf } from "../protocol/transfer-proof.ts";
import { MAX_LISTED_VAULTS } from "../protocol/typed-data.ts";
import type { ExitKit } from "./kit.ts";
import { type ExitOptions, type ExitPlan, planExit, timeOn } from "./withdraw.ts";

/** The owner's list counts for so long, in seconds of L1's clock. */
const LIST_SECONDS = 86_400n;

/** A renewal of vaults: their kits, the chain and the account that owns them. */
export interface RenewalOptions
  extends Pick<ExitOptions, "account" | "fromBlock" | "onSent" | "signal"> {
  /** 1 to 256 kits for the contract that `l1` is connected to, each vault once. */
  readonly kits: readonly ExitKit[];
  readonly l1: ExitOptions["l1"] & L1Renewer;
  /** Who gets the new vaults. Default: the owner; another needs transferable assets. */
  readonly recipient?: Address;
}

/** A mined renewal. */
export interface RenewalResult extends L1Receipt {
  /**
   * The new vaults, one for each asset and minting blob. Until the block is final, a reorganisation
   * can change their ids.
   */
  readonly vaults: readonly RenewedVault[];
}

/**
 * Makes new vaults of all that is left of an owner's vaults, by one transaction of the owner: small
 * amounts become one, and a vault at its eighth transfer begins anew. L1 takes all of them or none.
 * Whatever L1 would refuse is refused here, before anything is sent.
 *
 * @throws MintmarkError `validation_failed` for a damaged kit, another contract or account, a vault
 *   or an ERC-721 id twice, more than 256 vaults or 255 assets, a sum above 2^63 - 1, vaults that do
 *   not fit into one transaction, or another recipient of what is not transferable;
 *   `proof_not_ready` while a vault is not mature; `vault_spent` and `insufficient_balance` for a
 *   vault that has nothing left for this owner; `l1_failed` with the contract's reason
 *
 * @example
 * const { vaults } = await renewWithKits({ kits, l1, account: owner.address });
 * for (const { vaultId, amount } of vaults) console.log(vaultId, amount);
 */
export async function renewWithKits(options: RenewalOptions): Promise<RenewalResult> {
  const { kits, l1, onSent, signal } = options;
  requireRenewable(options);
  if (!(await l1.hasMakings())) {
    const { chainId, contract } = l1.settlement;
    const detail = `${contract} on chain ${chainId} makes no vaults, so none can be renewed. Withdraw them.`;
    throw invalid(detail);
  }
  const plans: ExitPlan[] = [];
  for (const kit of kits) {
    signal?.throwIfAborted();
    plans.push(await planned(kit, options));
  }
  requireSums(plans);
  const calls = await callsOf(plans, options);
  const refusal = await l1.checkRenewal(calls);
  if (refusal !== null) throw await refused(refusal, options);
  return l1.renew(calls, { onSent, signal });
}

/** Checks what the kits alone tell. */
function requireRenewable({ kits, recipient }: RenewalOptions): void {
  if (kits.length < 1 || kits.length > MAX_LISTED_VAULTS)
    throw invalid(
      `A renewal takes 1 to ${MAX_LISTED_VAULTS} vaults, not ${kits.length}. Renew the rest in another one, which can take the new vault too.`,
    );
  if (recipient !== undefined && BigInt(recipient) === BigInt(ZERO_ADDRESS))
    throw invalid("The recipient is the zero address. To burn vaults, redeem them.");
  if (new Set(kits.map(({ tip }) => tip.vaultId)).size !== kits.length)
    throw invalid("Two of the kits are of one vault. Give each vault once.");
  const assets = new Set(kits.map(({ vault }) => vault.assetType)).size;
  if (assets > MAX_BATCH_ASSETS)
    throw invalid(
      `The vaults are of ${assets} assets, and a renewal takes at most ${MAX_BATCH_ASSETS}.`,
    );
  const ids = new Map<string, VaultId>();
  for (const { token, vault, tip } of kits) {
    if (token.standard !== "erc721") continue;
    const id = `${vault.assetType} ${token.tokenId}`;
    const twin = ids.get(id);
    if (twin !== undefined)
      throw invalid(
        `Vaults ${twin} and ${tip.vaultId} are both of ERC-721 id ${token.tokenId}, of which at most one counts. Leave one out.`,
      );
    ids.set(id, tip.vaultId);
  }
}

/** The renewal of one vault. Its errors name the vault. */
function planned(kit: ExitKit, { l1, account, fromBlock, signal }: RenewalOptions) {
  return planExit({ kit, l1, account, fromBlock, signal }).catch((error: unknown) => {
    if (!(error instanceof MintmarkError)) throw error;
    const { code, message, cause } = error;
    throw new MintmarkError(code, `vault ${kit.tip.vaultId}: ${message}`, { cause });
  });
}

/** No vault holds more than 2^63 - 1 units. ERC-721 vaults are never summed up. */
function requireSums(plans: readonly ExitPlan[]): void {
  const sums = new Map<string, bigint>();
  for (const { kit, quantity } of plans) {
    const { assetType, mintingBlob } = kit.vault;
    const sum = (sums.get(assetType + mintingBlob) ?? 0n) + quantity;
    if (sum > MAX_AMOUNT)
      throw invalid(
        `The vaults of token ${kit.token.address} have ${sum} units together, and one vault at most ${MAX_AMOUNT}. Leave some of them out.`,
      );
    sums.set(assetType + mintingBlob, sum);
  }
}

/** The owner itself sends, so its list needs no signature. */
async function callsOf(
  plans: readonly ExitPlan[],
  { l1, account, recipient }: RenewalOptions,
): Promise<WithdrawalCall[]> {
  const list = plans.map(({ kit, withdrawnBefore, quantity }) => ({
    vaultId: tipIdOf(kit),
    withdrawnBefore,
    quantity,
  }));
  const deadline = (await timeOn(l1)) + LIST_SECONDS;
  const authorization = { deadline, list, signature: "0x" } as const;
  const to = (recipient ?? account).toLowerCase() as Address;
  return plans.map(({ kit, quantity }) => ({ ...kit, quantity, recipient: to, authorization }));
}

/** Says what the owner can do about the contract's refusal. */
async function refused(reason: string, { kits, l1 }: RenewalOptions): Promise<MintmarkError> {
  if (reason.startsWith("NotMature(")) {
    const now = await timeOn(l1);
    const waiting = kits.filter(({ maturesAt }) => maturesAt !== null && maturesAt > now);
    const last = waiting.reduce((most, { maturesAt }) => max(most, maturesAt ?? 0n), now);
    const when = new Date(Number(last) * 1000).toISOString();
    const ids = waiting.map(({ tip }) => tip.vaultId).join(", ");
    const detail = `Not mature yet: vault ${ids}, the last one at ${when}, in ${last - now} s of L1's clock. Wait, or leave it out.`;
    return new MintmarkError("proof_not_ready", detail);
  }
  if (reason.startsWith("NotTransferable("))
    return invalid(
      "Vaults of an asset that is not transferable can be renewed for their owner alone. Name no other recipient.",
    );
  if (/out ?of ?gas/i.test(reason))
    return invalid(
      `The proofs of ${kits.length} vaults need more gas than a transaction has. Renew fewer at once.`,
    );
  return new MintmarkError("l1_failed", `the contract would refuse with ${reason}`);
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
