import { type ComponentChildren, Fragment } from "preact";
import type { Hex } from "../../../core/protocol/verifier.ts";
import type * as client from "../../client/index.ts";
import { signWith } from "../../client/sign.ts";
import { requireTransfers } from "../../client/transfer.ts";
import { requireWithdrawal } from "../../client/withdraw.ts";
import { sentenceOf } from "../shared/format.ts";
import { Button } from "../shared/parts.tsx";
import { Amount } from "../shared/tokens.tsx";
import { accountsOf, switchChain } from "../shared/wallets.tsx";
import type { Entry, ExitKit } from "../withdraw/main.tsx";
import { asOwner, jsonAsOwner, type OwnVault, type SignedIn } from "./api.ts";
import { leftOf, numbered, ON_THE_WAY, PAID, type ShownStanding } from "./own-vaults.tsx";
import { settings, settlement } from "./source.tsx";
import { fateOf } from "./transfer-view.tsx";

// An owner acts on its tokens by its wallet: withdrawals, gifts and redemptions.

/** An act of an owner on some of its vaults. */
export interface Act {
  readonly signedIn: SignedIn;
  /** The transfers by which this page has given vaults away. */
  readonly given: Map<bigint, string>;
  /** Shows how a vault stands, before the server tells it. */
  change(vaultId: bigint, text: ShownStanding["text"], kind: ShownStanding["kind"]): void;
}

/** Most vaults of one signature, when the operator pays for as many a day. */
const MOST = 256;

/**
 * Withdraws by the operator's relay: one signature for each chain, and for each list of vaults.
 * Returns what was refused, as sentences.
 */
export async function byRelay(
  { signedIn, change }: Act,
  vaults: readonly OwnVault[],
): Promise<string[]> {
  const refused: Pick<client.OwnersWithdrawalsReply["vaults"][number], "vaultId" | "error">[] = [];
  const most = Math.min(MOST, settings.relayVaults);
  for (const group of Map.groupBy(vaults, ({ chainId }) => chainId).values()) {
    for (let first = 0; first < group.length; first += most) {
      const part = group.slice(first, first + most);
      const vaultIds = part.map(({ vaultId }) => String(vaultId));
      const path = "/owner/v1/withdrawals";
      const prepared = await jsonAsOwner<client.WithdrawalPreparation>(
        signedIn,
        `${path}/prepare`,
        { vaultIds },
      );
      const wanted = { vaultIds, recipient: signedIn.address, signer: signedIn.provider };
      const check = () => requireWithdrawal(prepared, wanted);
      const signature = await signAsked(
        signedIn,
        "withdrawal",
        prepared,
        String(group[0]?.chainId),
        check,
      );
      const list = { ...prepared.submit.body, signature };
      const reply = await jsonAsOwner<client.OwnersWithdrawalsReply>(signedIn, path, list);
      for (const { vaultId, error } of reply.vaults)
        if (error === null) change(BigInt(vaultId), ON_THE_WAY.accepted, "waiting");
      refused.push(...prepared.refused, ...reply.vaults.filter(({ error }) => error !== null));
    }
  }
  const named = (id: string) => nameOf(vaults.find(({ vaultId }) => `${vaultId}` === id));
  return refused.map(
    ({ vaultId, error }) => `${named(vaultId)} was not accepted. ${error?.detail ?? ""}`,
  );
}

/**
 * The owner's signature over a message for the contract that pays tokens of a chain. The server
 * prepares the message, so the page first checks that it says what the owner asked for, to that
 * contract.
 */
export async function signAsked(
  { provider, address }: SignedIn,
  what: string,
  {
    typedData,
  }: client.TransferPreparation | client.WithdrawalPreparation | client.OrderPreparation,
  chainId: string,
  check: () => void,
): Promise<string> {
  const { portals } = await settlement();
  const { domain } = typedData;
  try {
    check();
    const contract = portals.find((portal) => portal.chainId === chainId)?.contract.toLowerCase();
    if (String(domain.chainId) !== chainId || domain.verifyingContract.toLowerCase() !== contract)
      throw new Error("The message is for another contract.");
  } catch (cause) {
    throw new Error(
      `The server prepared another ${what} than the one you asked for. Do not sign it.`,
      { cause },
    );
  }
  if (!(await accountsOf(provider)).includes(address as Hex))
    throw new Error(`Choose the account ${address} in your wallet.`);
  await switchChain(provider, BigInt(chainId));
  return signWith(provider, typedData, address);
}

/** The exit kit of a vault as it is now. The contract judges it. */
async function kitOf(signedIn: SignedIn, { vaultId }: OwnVault): Promise<ExitKit> {
  const { parseExitKit } = await import("/explorer/withdraw.js");
  const answer = await asOwner(signedIn, `/owner/v1/vaults/${vaultId}/exit-kit`);
  const kit = parseExitKit(await answer.text());
  if (kit.tip.vaultId === vaultId) return kit;
  throw new Error(`The server gave the kit of vault ${kit.tip.vaultId}.`);
}

/** A token in a sentence: by its id, where it has one. */
function nameOf(vault: OwnVault | undefined): string {
  if (vault === undefined) return "A token";
  return vault.tokenId === null ? vault.name : numbered(vault.name, vault.tokenId);
}

/**
 * Withdraws by the owner's own transactions. Each goes to one contract that pays, and takes up to
 * 21 vaults. Returns what was refused, as sentences.
 */
export async function byOwnTransaction(
  { signedIn, change }: Act,
  vaults: readonly OwnVault[],
): Promise<string[]> {
  // The Ethereum library is loaded only here.
  const { withdraw } = await import("/explorer/withdraw.js");
  const refused: string[] = [];
  const kits = [];
  for (const vault of vaults) {
    try {
      kits.push(await kitOf(signedIn, vault));
    } catch (error) {
      refused.push(`${nameOf(vault)} cannot be withdrawn. ${sentenceOf(error)}`);
    }
  }
  for (const group of Map.groupBy(kits, ({ vault }) => vault.chainId).values()) {
    const [kit] = group;
    if (kit === undefined) continue;
    await switchChain(signedIn.provider, kit.settlement.chainId);
    const sent = () => {
      for (const { tip } of group) change(tip.vaultId, ON_THE_WAY.submitted, "waiting");
    };
    for (const { vaultId, refusal } of await withdraw(
      signedIn.provider,
      signedIn.address,
      group,
      sent,
    )) {
      if (refusal === null) change(vaultId, PAID, "spent");
      else {
        change(vaultId, "You can withdraw it.", "ready");
        const vault = vaults.find((each) => each.vaultId === vaultId);
        refused.push(`${nameOf(vault)} was not paid. ${refusal}`);
      }
    }
  }
  return refused;
}

/** Most vaults of one renewal. */
const MOST_RENEWED = 256;

/** Makes one vault of several, or a vault anew, by the owner's own transaction. */
export async function renew(
  { signedIn, change }: Act,
  vaults: readonly OwnVault[],
): Promise<string[]> {
  const { provider, address } = signedIn;
  const { renew: send } = await import("/explorer/withdraw.js");
  const some = vaults.slice(0, MOST_RENEWED);
  const [kit, ...kits] = await Promise.all(some.map((vault) => kitOf(signedIn, vault)));
  if (kit === undefined) return [];
  await switchChain(provider, kit.settlement.chainId);
  const tell = (text: string, kind: ShownStanding["kind"]) => {
    for (const { vaultId } of some) change(vaultId, text, kind);
  };
  await send(provider, address, [kit, ...kits], () => tell(SENT, "waiting")).catch(
    (error: unknown) => {
      tell("You can withdraw it.", "ready");
      throw error;
    },
  );
  tell("Renewed as a new vault, which comes once its block is final.", "spent");
  return [];
}

const SENT = ON_THE_WAY.submitted ?? "";

/** Tokens on L1 that the owner wants back. */
export type Return = Omit<Entry, "settlement">;

/** Brings tokens back from L1 by the owner's own transaction. */
export async function bringBack({ signedIn }: Act, entry: Return): Promise<string[]> {
  const { provider, address } = signedIn;
  const { enter } = await import("/explorer/withdraw.js");
  const { chainId, contract } = await settlement();
  await switchChain(provider, BigInt(chainId));
  const place = { chainId: BigInt(chainId), contract: contract as Hex };
  await enter(provider, address, { ...entry, settlement: place }, () => undefined);
  return [];
}

const NOBODY: Hex = `0x${"00".repeat(20)}`;

interface QuestionProps {
  onSign: () => void;
  onCancel: () => void;
  children: ComponentChildren;
}

/** The owner reads this before the wallet asks. */
export function Question({ onSign, onCancel, children }: QuestionProps) {
  return (
    <fieldset class="notice" aria-label="What you sign">
      {children}
      <div class="choices">
        <Button main onClick={onSign} text="Sign in my wallet" />
        <Button onClick={onCancel} text="Cancel" />
      </div>
    </fieldset>
  );
}

/** A vault, and how much of it moves; null for all that is left. */
export interface MovedVault {
  readonly vault: OwnVault;
  readonly units: bigint | null;
}

/** All that is left of each vault. */
export const whole = (vaults: readonly OwnVault[]): readonly MovedVault[] =>
  vaults.map((vault) => ({ vault, units: null }));

/**
 * The fewest vaults that have so many units together, of the last one perhaps a part. Null when all
 * of them have less.
 */
export function partsOf(vaults: readonly OwnVault[], units: bigint): readonly MovedVault[] | null {
  const parts: MovedVault[] = [];
  let missing = units;
  const largest = [...vaults].sort((a, b) => Number(leftOf([b]) - leftOf([a])));
  for (const vault of largest) {
    const left = leftOf([vault]);
    parts.push({ vault, units: left <= missing ? null : missing });
    missing -= left;
    if (missing <= 0n) return parts;
  }
  return null;
}

/** Says what a gift or a redemption does; the zero address in place of a receiver redeems. */
export function GiftText({ parts, to }: { parts: readonly MovedVault[]; to: Hex | null }) {
  return (
    <>
      <p>
        {to === null ? "You redeem " : "You give "}
        {parts.map(({ vault, units }, i) => (
          <Fragment key={vault.vaultId}>
            {i > 0 && ", "}
            {vault.tokenId !== null && nameOf(vault)}
            {vault.tokenId !== null && vault.standard !== "erc721" && ", "}
            {vault.standard !== "erc721" && <Amount of={vault} amount={units ?? leftOf([vault])} />}
          </Fragment>
        ))}
        {to === null ? ". The tokens are burnt for ever." : " to "}
        {to !== null && [<code key="to">{to}</code>, "."]}
      </p>
      <p>
        Until L1 has it, you can stop it only by a transaction of your own. After that, nobody can
        take it back. It costs you no gas.
      </p>
      <details>
        <summary>What the wallet shows</summary>
        <p>
          A message named "Transfers": the vault of each token, the amount 0 for all that is left,
          and {to === null ? "the zero address" : "the receiver"}. The vaults are{" "}
          {parts.map(({ vault }) => vault.vaultId).join(", ")}.
        </p>
      </details>
    </>
  );
}

/**
 * Gives vaults or parts of them to another owner, or redeems them, with one signature for each list
 * of vaults.
 */
export async function giveAway(
  { signedIn, given, change }: Act,
  parts: readonly MovedVault[],
  to: Hex | null,
): Promise<string[]> {
  for (let first = 0; first < parts.length; first += settings.relayVaults) {
    const some = parts.slice(first, first + settings.relayVaults);
    const receiver = to === null ? ({ redeem: true } as const) : { to };
    const transfers = some.map(({ vault, units }) => ({
      vaultId: String(vault.vaultId),
      ...(units !== null && { amount: String(units) }),
      ...receiver,
    }));
    const prepared = await jsonAsOwner<client.TransferPreparation>(
      signedIn,
      "/owner/v1/transfers/prepare",
      { transfers },
    );
    const { chainId } = await settlement();
    const check = () => requireTransfers(prepared, transfers);
    const signature = await signAsked(signedIn, "transfer", prepared, chainId, check);
    // The server gets exactly the message that was signed.
    const signed = { ...prepared.typedData.message, signature };
    const sent = await jsonAsOwner<client.OwnersTransfer>(signedIn, "/owner/v1/transfers", signed);
    for (const { vault } of some) {
      given.set(vault.vaultId, sent.transferId);
      change(vault.vaultId, `It is ${fateOf(to ?? NOBODY)}; accepted.`, "waiting");
    }
  }
  return [];
}

/**
 * Tells why a gift of this page has failed. The server then shows its vault as the owner's again,
 * which it also does for a moment before it knows of the gift.
 */
export async function followGiven(
  { signedIn, given, change }: Act,
  vaults: readonly OwnVault[],
): Promise<void> {
  for (const { vaultId, standing } of vaults) {
    const transferId = given.get(vaultId);
    if (transferId === undefined || standing !== "held") continue;
    const { status, failure } = await jsonAsOwner<client.OwnersTransfer>(
      signedIn,
      `/owner/v1/transfers/${transferId}`,
    );
    if (status !== "failed") continue;
    given.delete(vaultId);
    change(vaultId, `That failed: ${failure ?? "no reason given"}`, "ready");
  }
}
