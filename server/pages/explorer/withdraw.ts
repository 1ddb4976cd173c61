import type { VaultContent } from "../../../core/protocol/verifier.ts";
import { sentenceOf } from "./dom.ts";
import { asOwner, postAsOwner, type SignedIn } from "./session.ts";
import { relayVaults } from "./source.ts";
import { switchChain } from "./wallets.ts";

/** How a vault stands, and in words. */
export type Change = (vaultId: bigint, text: string, standing: "ready" | "waiting" | "spent") => void;

/** A withdrawal as the operator tells its owner. */
export interface Withdrawal {
  readonly status: string;
  readonly quantity: string;
  readonly withdrawnBefore: string;
  readonly failure: string | null;
}

interface Preparation {
  readonly typedData: {
    readonly domain: { readonly chainId: number };
    readonly message: {
      readonly vaults: readonly { readonly vaultId: string }[];
      readonly recipient: string;
      readonly deadline: string;
    };
  };
  readonly refused: readonly Refused[];
}

interface Refused {
  readonly vaultId: string;
  readonly error: { readonly detail: string } | null;
}

/** Most vaults of one signature, when the operator pays for as many a day. */
const MOST = 256;

/**
 * Withdraws by the operator's relay: one signature for each chain, and for each list of vaults.
 *
 * @returns what was refused, as sentences
 */
export async function byRelay(session: SignedIn, vaults: readonly VaultContent[], change: Change): Promise<string[]> {
  const refused: Refused[] = [];
  const most = Math.min(MOST, relayVaults());
  for (const group of Map.groupBy(vaults, ({ chainId }) => chainId).values()) {
    for (let first = 0; first < group.length; first += most) {
      const ids = group.slice(first, first + most).map(({ vaultId }) => String(vaultId));
      const prepared = await postAsOwner<Preparation>(session, "/owner/v1/withdrawals/prepare", {
        vaultIds: ids,
      });
      requireAsked(prepared, session, ids);
      const { typedData } = prepared;
      await switchChain(session.provider, BigInt(typedData.domain.chainId));
      const params = [session.address, JSON.stringify(typedData)];
      const signature = await session.provider.request({ method: "eth_signTypedData_v4", params });
      // What was signed is what is sent.
      const list = { ...typedData.message, signature };
      const reply = await postAsOwner<{ readonly vaults: readonly Refused[] }>(session, "/owner/v1/withdrawals", list);
      for (const { vaultId, error } of reply.vaults) if (error === null) change(BigInt(vaultId), "accepted", "waiting");
      refused.push(...prepared.refused, ...reply.vaults.filter(({ error }) => error !== null));
    }
  }
  return refused.map(({ vaultId, error }) => `Vault ${vaultId} was not accepted. ${error?.detail ?? ""}`);
}

/** The server prepares the message, so the page checks that it says what the owner asked for. */
function requireAsked({ typedData: { message } }: Preparation, { address }: SignedIn, ids: readonly string[]): void {
  const foreign = message.vaults.find(({ vaultId }) => !ids.includes(vaultId));
  if (message.recipient === address && foreign === undefined) return;
  throw new Error("The server prepared another withdrawal than the one you asked for. Do not sign it.");
}

/**
 * Withdraws by the owner's own transactions, one for each contract that pays and each 21 vaults.
 *
 * @returns what was refused, as sentences
 */
export async function byOwnTransaction(
  session: SignedIn,
  vaults: readonly VaultContent[],
  change: Change,
): Promise<string[]> {
  // The Ethereum library is loaded only here.
  const { parseExitKit, withdraw } = await import("/explorer/withdraw.js");
  const refused: string[] = [];
  const kits = [];
  for (const { vaultId } of vaults) {
    try {
      kits.push(parseExitKit(await (await asOwner(session, `/owner/v1/vaults/${vaultId}/exit-kit`)).text()));
    } catch (error) {
      refused.push(`Vault ${vaultId} cannot be withdrawn. ${sentenceOf(error)}`);
    }
  }
  for (const group of Map.groupBy(kits, ({ vault }) => vault.chainId).values()) {
    const [kit] = group;
    if (kit === undefined) continue;
    await switchChain(session.provider, kit.settlement.chainId);
    const sent = () => {
      for (const { tip } of group) change(tip.vaultId, "sent to L1", "waiting");
    };
    for (const { vaultId, refusal } of await withdraw(session.provider, session.address, group, sent)) {
      if (refusal === null) change(vaultId, "on L1", "spent");
      else {
        change(vaultId, "here", "ready");
        refused.push(`Vault ${vaultId} was not paid. ${refusal}`);
      }
    }
  }
  return refused;
}
