import { Fragment } from "preact";
import type { Hex } from "../../../core/protocol/verifier.ts";
import type * as client from "../../client/index.ts";
import { signWith } from "../../client/sign.ts";
import { requireTransfers } from "../../client/transfer.ts";
import { requireWithdrawal } from "../../client/withdraw.ts";
import { blobText, sentenceOf } from "../shared/format.ts";
import { Button } from "../shared/parts.tsx";
import { Amount, shortName } from "../shared/tokens.tsx";
import { accountsOf, switchChain } from "../shared/wallets.tsx";
import { asOwner, jsonAsOwner, type OwnVault, type SignedIn } from "./api.ts";
import { ON_THE_WAY, PAID, type Standing } from "./own-vaults.tsx";
import { settings, settlement } from "./source.tsx";
import { fateOf } from "./transfer-view.tsx";

// An owner acts on its tokens by its wallet: withdrawals, gifts and redemptions.

/** An act of an owner on some of its vaults. */
export interface Act {
  readonly signedIn: SignedIn;
  readonly vaults: readonly OwnVault[];
  /** The transfers by which this page has given vaults away. */
  readonly given: Map<bigint, string>;
  /** Shows how a vault stands, before the server tells it. */
  change(vaultId: bigint, text: Standing["text"], kind: Standing["kind"]): void;
}

/** Most vaults of one signature, when the operator pays for as many a day. */
const MOST = 256;

/**
 * Withdraws by the operator's relay: one signature for each chain, and for each list of vaults.
 * Returns what was refused, as sentences.
 */
export async function byRelay({ signedIn, vaults, change }: Act): Promise<string[]> {
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
  const named = (id: string) => shortName(vaults.find(({ vaultId }) => `${vaultId}` === id));
  return refused.map(
    ({ vaultId, error }) => `${named(vaultId)} was not accepted. ${error?.detail ?? ""}`,
  );
}

/**
 * The owner's signature over a message for the contract that pays tokens of a chain. The server
 * prepares the message, so the page first checks that it says what the owner asked for, to that
 * contract.
 */
async function signAsked(
  { provider, address }: SignedIn,
  what: string,
  { typedData }: client.TransferPreparation | client.WithdrawalPreparation,
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

/**
 * Withdraws by the owner's own transactions. Each goes to one contract that pays, and takes up to
 * 21 vaults. Returns what was refused, as sentences.
 */
export async function byOwnTransaction({ signedIn, vaults, change }: Act): Promise<string[]> {
  // The Ethereum library is loaded only here.
  const { parseExitKit, withdraw } = await import("/explorer/withdraw.js");
  const refused: string[] = [];
  const kits = [];
  for (const vault of vaults) {
    const { vaultId } = vault;
    try {
      kits.push(
        parseExitKit(
          await (await asOwner(signedIn, `/owner/v1/vaults/${vaultId}/exit-kit`)).text(),
        ),
      );
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
        refused.push(`${shortName(vault)} was not paid. ${refusal}`);
      }
    }
  }
  return refused;
}

const NOBODY: Hex = `0x${"00".repeat(20)}`;

interface QuestionProps {
  vaults: readonly OwnVault[];
  /** null for a redemption. */
  to: Hex | null;
  onSign: () => void;
  onCancel: () => void;
}

/** The owner reads this before the wallet asks. */
export function Question({ vaults, to, onSign, onCancel }: QuestionProps) {
  return (
    <fieldset class="notice" aria-label="What you sign">
      <p>
        {to === null ? "You redeem " : "You give "}
        {vaults.map((vault, i) => (
          <Fragment key={vault.vaultId}>
            {i > 0 && ", "}
            {vault.blob === "0x" ? <Amount of={vault} /> : `token ${blobText(vault.blob)}`}
          </Fragment>
        ))}
        {to === null
          ? ", with all that is left. The tokens are burnt for ever."
          : ", with all that is left, to "}
        {to !== null && [<code key="to">{to}</code>, "."]}
      </p>
      <p>
        Your wallet shows a message named "Transfers": the vault of each token, the amount 0 for all
        that is left, and {to === null ? "the zero address" : "the receiver"}. Nobody can take it
        back after you have signed. It costs you no gas.
      </p>
      <details>
        <summary>The vaults</summary>
        <p>{vaults.map(({ vaultId }) => vaultId).join(", ")}</p>
      </details>
      <div class="choices">
        <Button main onClick={onSign} text="Sign in my wallet" />
        <Button onClick={onCancel} text="Cancel" />
      </div>
    </fieldset>
  );
}

/**
 * Gives whole vaults to another owner, or redeems them, with one signature for each list of vaults.
 */
export async function giveAway(
  { signedIn, vaults, given, change }: Act,
  to: Hex | null,
): Promise<string[]> {
  for (let first = 0; first < vaults.length; first += settings.relayVaults) {
    const some = vaults.slice(first, first + settings.relayVaults);
    const receiver = to === null ? ({ redeem: true } as const) : { to };
    const transfers = some.map(({ vaultId }) => ({ vaultId: String(vaultId), ...receiver }));
    const prepared = await jsonAsOwner<client.TransferPreparation>(
      signedIn,
      "/owner/v1/transfers/prepare",
      {
        transfers,
      },
    );
    const { chainId } = await settlement();
    const check = () => requireTransfers(prepared, transfers);
    const signature = await signAsked(signedIn, "transfer", prepared, chainId, check);
    // The server gets exactly the message that was signed.
    const signed = { ...prepared.typedData.message, signature };
    const sent = await jsonAsOwner<client.OwnersTransfer>(signedIn, "/owner/v1/transfers", signed);
    for (const { vaultId } of some) {
      given.set(vaultId, sent.transferId);
      change(vaultId, `It is ${fateOf(to ?? NOBODY)}; accepted.`, "waiting");
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
