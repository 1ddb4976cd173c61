import type { ComponentChildren } from "preact";
import type { VaultContent } from "../../../core/protocol/verifier.ts";
import type { OwnersListReply, TypedData, WithdrawalPreparation } from "../../client/index.ts";
import { requireWithdrawal } from "../../client/withdraw.ts";
import { sentenceOf } from "../shared/format.ts";
import { shortName } from "../shared/tokens.tsx";
import { signTyped, switchChain } from "../shared/wallets.ts";
import { asOwner, jsonAsOwner, type SignedIn } from "./api.ts";
import { relayVaults, settlement } from "./source.tsx";

/** How a token stands, in words. */
export interface Standing {
  readonly text: ComponentChildren;
  readonly kind: "ready" | "waiting" | "spent";
}

export type Change = (vaultId: bigint, text: Standing["text"], kind: Standing["kind"]) => void;

/** What the page says of a withdrawal on its way, by the operator's status, and of a paid one. */
export const ON_THE_WAY: Readonly<Record<string, string>> = {
  accepted: "Accepted. It waits for its batch and its turn.",
  submitted: "Sent to L1.",
};
export const PAID = "It is on L1, in your wallet.";

/** Most vaults of one signature, when the operator pays for as many a day. */
const MOST = 256;

/**
 * Withdraws by the operator's relay: one signature for each chain, and for each list of vaults. L1 takes no list for
 * vaults that transfers made, so each of them has its own signature.
 *
 * @returns what was refused, as sentences
 */
export async function byRelay(
  signedIn: SignedIn,
  vaults: readonly VaultContent[],
  change: Change,
  isTransferred: (vaultId: bigint) => boolean,
): Promise<string[]> {
  const refused: Pick<OwnersListReply["vaults"][number], "vaultId" | "error">[] = [];
  const most = Math.min(MOST, relayVaults());
  const key = ({ vaultId, chainId }: VaultContent) => (isTransferred(vaultId) ? `vault ${vaultId}` : `${chainId}`);
  for (const group of Map.groupBy(vaults, key).values()) {
    for (let first = 0; first < group.length; first += most) {
      const part = group.slice(first, first + most);
      const vaultIds = part.map(({ vaultId }) => String(vaultId));
      const prepared = await jsonAsOwner<WithdrawalPreparation>(signedIn, "/owner/v1/withdrawals/prepare", {
        vaultIds,
      });
      const wanted = { vaultIds, recipient: signedIn.address, signer: signedIn.provider };
      const check = () => requireWithdrawal(prepared, wanted);
      const signature = await signAsked(signedIn, "withdrawal", prepared.typedData, String(group[0]?.chainId), check);
      const list = { ...prepared.submit.body, signature };
      const reply = await jsonAsOwner<OwnersListReply>(signedIn, "/owner/v1/withdrawals", list);
      for (const { vaultId, error } of reply.vaults)
        if (error === null) change(BigInt(vaultId), ON_THE_WAY.accepted, "waiting");
      refused.push(...prepared.refused, ...reply.vaults.filter(({ error }) => error !== null));
    }
  }
  const named = (id: string) => shortName(vaults.find(({ vaultId }) => `${vaultId}` === id));
  return refused.map(({ vaultId, error }) => `${named(vaultId)} was not accepted. ${error?.detail ?? ""}`);
}

/**
 * The owner's signature over a message for the contract that pays tokens of a chain. The server prepares the message, so
 * the page first checks that it says what the owner asked for, to that contract.
 */
export async function signAsked(
  signedIn: SignedIn,
  what: string,
  typedData: TypedData,
  chainId: string,
  check: () => void,
): Promise<unknown> {
  const { portals } = await settlement();
  const { domain } = typedData;
  try {
    check();
    const contract = portals.find((portal) => portal.chainId === chainId)?.contract.toLowerCase();
    if (String(domain.chainId) !== chainId || domain.verifyingContract.toLowerCase() !== contract)
      throw new Error("The message is for another contract.");
  } catch (cause) {
    throw new Error(`The server prepared another ${what} than the one you asked for. Do not sign it.`, { cause });
  }
  return signTyped(signedIn, typedData);
}

/**
 * Withdraws by the owner's own transactions. Each goes to one contract that pays, and takes up to 21 vaults.
 *
 * @returns what was refused, as sentences
 */
export async function byOwnTransaction(
  signedIn: SignedIn,
  vaults: readonly VaultContent[],
  change: Change,
): Promise<string[]> {
  // The Ethereum library is loaded only here.
  const { parseExitKit, withdraw } = await import("/explorer/withdraw.js");
  const refused: string[] = [];
  const kits = [];
  for (const vault of vaults) {
    const { vaultId } = vault;
    try {
      kits.push(parseExitKit(await (await asOwner(signedIn, `/owner/v1/vaults/${vaultId}/exit-kit`)).text()));
    } catch (error) {
      refused.push(`${shortName(vault)} cannot be withdrawn. ${sentenceOf(error)}`);
    }
  }
  for (const group of Map.groupBy(kits, ({ vault }) => vault.chainId).values()) {
    const [kit] = group;
    if (kit === undefined) continue;
    await switchChain(signedIn.provider, kit.settlement.chainId);
    const sent = () => {
      for (const { tip } of group) change(tip.vaultId, ON_THE_WAY.submitted, "waiting");
    };
    for (const { vaultId, refusal } of await withdraw(signedIn.provider, signedIn.address, group, sent)) {
      if (refusal === null) change(vaultId, PAID, "spent");
      else {
        change(vaultId, "You can withdraw it.", "ready");
        const vault = vaults.find((each) => each.vaultId === vaultId);
        refused.push(`${shortName(vault)} was not paid. ${refusal}`);
      }
    }
  }
  return refused;
}
