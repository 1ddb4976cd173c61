import { Fragment } from "preact";
import type { Hex, VaultContent } from "../../../core/protocol/verifier.ts";
import type { OwnersTransfer, TransferPreparation } from "../../client/index.ts";
import { requireTransfers } from "../../client/transfer.ts";
import { blobText } from "../shared/format.ts";
import { Button } from "../shared/parts.tsx";
import { Amount } from "../shared/tokens.tsx";
import { jsonAsOwner, type SignedIn } from "./api.ts";
import { relayVaults, settlement } from "./source.tsx";
import { fateOf } from "./transfer-view.tsx";
import { type Change, signAsked } from "./withdrawals.ts";

const NOBODY: Hex = `0x${"00".repeat(20)}`;
/** The vaults that this page has given away, with their transfer. */
export type Given = Map<bigint, { readonly transferId: string; readonly to: Hex }>;

interface QuestionProps {
  vaults: readonly VaultContent[];
  /** null for a redemption. */
  to: Hex | null;
  onSign: () => void;
  onCancel: () => void;
}

/** What the owner reads before the wallet asks. */
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
        {to === null ? ", with all that is left. The tokens are burnt for ever." : ", with all that is left, to "}
        {to !== null && [<code key="to">{to}</code>, "."]}
      </p>
      <p>
        Your wallet shows a message named "Transfers": the vault of each token, the amount 0 for all that is left, and{" "}
        {to === null ? "the zero address" : "the receiver"}. Nobody can take it back after you have signed. It costs you
        no gas.
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

/** Gives whole vaults to another owner, or redeems them, with one signature for each list of vaults. */
export async function giveAway(
  signedIn: SignedIn,
  vaults: readonly VaultContent[],
  to: Hex | null,
  given: Given,
  change: Change,
): Promise<string[]> {
  for (let first = 0; first < vaults.length; first += relayVaults()) {
    const some = vaults.slice(first, first + relayVaults());
    const receiver = to === null ? ({ redeem: true } as const) : { to };
    const transfers = some.map(({ vaultId }) => ({ vaultId: String(vaultId), ...receiver }));
    const prepared = await jsonAsOwner<TransferPreparation>(signedIn, "/owner/v1/transfers/prepare", { transfers });
    const { typedData } = prepared;
    const { chainId } = await settlement();
    const check = () => requireTransfers(prepared, transfers);
    const signature = await signAsked(signedIn, "transfer", typedData, chainId, check);
    // What was signed is what is sent.
    const sent = await jsonAsOwner<OwnersTransfer>(signedIn, "/owner/v1/transfers", {
      ...typedData.message,
      signature,
    });
    for (const { vaultId } of some) {
      given.set(vaultId, { transferId: sent.transferId, to: to ?? NOBODY });
      change(vaultId, `It is ${fateOf(to ?? NOBODY)}; accepted.`, "waiting");
    }
  }
  return [];
}

/** Shows how the vaults stand that this page has given away. */
export async function followGiven(signedIn: SignedIn, given: Given, change: Change): Promise<void> {
  for (const transferId of new Set([...given.values()].map((each) => each.transferId))) {
    const { status, failure } = await jsonAsOwner<OwnersTransfer>(signedIn, `/owner/v1/transfers/${transferId}`);
    for (const [vaultId, { to, transferId: own }] of given) {
      if (own !== transferId) continue;
      if (status === "failed") {
        given.delete(vaultId);
        change(vaultId, `That failed: ${failure ?? "no reason given"}`, "ready");
      } else if (status === "settled" || status === "finalized") change(vaultId, `It is ${fateOf(to)}.`, "spent");
      else change(vaultId, `It is ${fateOf(to)}; ${status}.`, "waiting");
    }
  }
}
