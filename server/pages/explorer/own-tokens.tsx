import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Hex, VaultContent } from "../../../core/protocol/verifier.ts";
import type { OwnersWithdrawals } from "../../client/index.ts";
import { blobText, counted, sentenceOf } from "../shared/format.ts";
import {
  Button,
  code,
  download,
  Facts,
  More,
  Notice,
  onSent,
  useAction,
  useLoad,
} from "../shared/parts.tsx";
import { Amount, amountText, isImage, Picture, textIn, useMetadata } from "../shared/tokens.tsx";
import { asOwner, jsonAsOwner, type SignedIn } from "./api.ts";
import * as acts from "./owner-acts.tsx";
import { l1, settings, settlement } from "./source.tsx";
import { type OwnTransfers, VaultLink } from "./transfer-view.tsx";

const PAGE = 24;
const POLLING_MS = 2_000;
const ADDRESS = /^0x(?!0{40}$)[0-9a-fA-F]{40}$/;

interface OwnTokensProps {
  signedIn: SignedIn;
  transfers: OwnTransfers;
  vaults: readonly VaultContent[];
}

export function OwnTokens({ signedIn, transfers, vaults }: OwnTokensProps) {
  const [count, setCount] = useState(PAGE);
  const [isHosted, setHosted] = useState(false);
  const [asked, setAsked] = useState(false);
  /** The tokens that the owner's wallet is asked about now. */
  const [acting, setActing] = useState<ReadonlySet<VaultContent>>(new Set());
  const busy = acting.size > 0;
  const [notices, setNotices] = useState<readonly string[]>([]);
  const [question, setQuestion] = useState<{ readonly to: Hex | null } | null>(null);
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const { standings, selected, given } = useRef({
    standings: new Map<bigint, acts.Standing>(),
    selected: new Set<bigint>(),
    given: new Map() as acts.Act["given"],
  }).current;
  const kindOf = ({ vaultId }: VaultContent) => standings.get(vaultId)?.kind ?? "ready";
  const shown = vaults.slice(0, count);
  const chosen = shown.filter(({ vaultId }) => selected.has(vaultId));
  const relayed = settings.relayVaults;
  const act: acts.Act = { signedIn, vaults: chosen, given, change: set };

  // An act says itself how its tokens stand, until it has ended.
  const waiting = vaults.filter((vault) => kindOf(vault) === "waiting" && !acting.has(vault));
  /** Looks at what is new here, and at what is on its way. */
  const lookAround = async () => {
    const some = [...shown.filter(({ vaultId }) => !standings.has(vaultId)), ...waiting];
    for (let first = 0; first < some.length; first += 100)
      await look(some.slice(first, first + 100));
    await acts.followGiven(act).catch(() => undefined);
  };
  useLoad(lookAround, shown.length, waiting.length === 0 ? undefined : POLLING_MS);

  /** Shows how a token stands. A spent one, or one on its way, cannot be selected. */
  function set(vaultId: bigint, text: acts.Standing["text"], kind: acts.Standing["kind"]): void {
    standings.set(vaultId, { text, kind });
    if (kind !== "ready") selected.delete(vaultId);
    redraw(null);
  }

  function select(ids: readonly bigint[], isOn: boolean): void {
    for (const vaultId of ids) isOn ? selected.add(vaultId) : selected.delete(vaultId);
    setQuestion(null);
    redraw(null);
  }

  function ask(to: string | null): void {
    const isWrong = to !== null && !ADDRESS.test(to);
    setNotices(isWrong ? ["Enter the receiver's address: 0x and 40 hex digits."] : []);
    setQuestion(isWrong ? null : { to: to as Hex | null });
  }

  async function run(work: (act: acts.Act) => Promise<readonly string[]>): Promise<void> {
    setActing(new Set(act.vaults));
    setQuestion(null);
    setNotices([]);
    setNotices(await work(act).catch((error: unknown) => [sentenceOf(error)]));
    setActing(new Set());
  }

  /** Asks L1 what has been paid, and the operator what is on its way. */
  async function look(some: readonly VaultContent[]): Promise<void> {
    const [paid, newest] = await Promise.all([
      paidOnL1(some).catch(() => new Map<bigint, bigint>()),
      newestOf(signedIn, some).catch(() => null),
    ]);
    for (const vault of some) {
      const { vaultId, amount } = vault;
      const fate = transfers.fate(vaultId);
      if (fate !== null) given.delete(vaultId);
      if (fate !== null) set(vaultId, `It is ${fate}.`, "spent");
      if (fate !== null || given.has(vaultId)) continue;
      const {
        status = "",
        quantity = "0",
        withdrawnBefore = "0",
        failure,
      } = newest?.get(vaultId) ?? {};
      const settled = status === "settled" || status === "finalized";
      const told = settled ? BigInt(withdrawnBefore) + BigInt(quantity) : 0n;
      const withdrawn = paid.get(vaultId) ?? told;
      // A server that cannot be reached has taken nothing back.
      if (newest === null && withdrawn < amount && kindOf(vault) === "waiting") continue;
      const can = relayed === 0 ? "You can withdraw it." : "You can withdraw it or give it away.";
      if (withdrawn >= amount) set(vaultId, acts.PAID, "spent");
      else if (status in acts.ON_THE_WAY) set(vaultId, acts.ON_THE_WAY[status], "waiting");
      else if (status === "failed")
        set(vaultId, `The withdrawal failed: ${failure ?? "no reason given"}`, "ready");
      else if (withdrawn === 0n) set(vaultId, can, "ready");
      else
        set(
          vaultId,
          [<Amount key="paid" of={vault} amount={withdrawn} />, ` of it is on L1. ${can}`],
          "ready",
        );
    }
  }

  const ready = shown.filter((vault) => kindOf(vault) === "ready").map(({ vaultId }) => vaultId);
  const give = onSent((fields) => ask(String(fields.get("receiver")).trim()));
  return (
    <>
      <p class="quiet">
        {relayed === 0
          ? "You pay the gas of your own transaction and depend on nobody. The tokens go to your own address."
          : `You sign once. The operator sends the transaction and pays the gas of up to ${counted(relayed, "token")} a day. By your own transaction you pay it and depend on nobody. The tokens go to your own address.`}
      </p>
      <div class="choices">
        <Button
          disabled={ready.length === 0}
          onClick={() => select(ready, true)}
          text="Select all"
        />
        {isHosted && !asked && (
          <Button onClick={() => setAsked(true)} text="Show images from their hosts" />
        )}
      </div>
      <ul class="tokens" aria-label="My tokens">
        {shown.map((vault) => (
          <Card
            key={vault.vaultId}
            vault={vault}
            signedIn={signedIn}
            asked={asked}
            standing={standings.get(vault.vaultId)}
            isSelected={selected.has(vault.vaultId)}
            onSelect={(isOn) => select([vault.vaultId], isOn)}
            onHosted={() => setHosted(true)}
          />
        ))}
      </ul>
      <More left={vaults.length - count} show={() => setCount(count + PAGE)} />
      <section
        class={chosen.length > 0 ? "withdraw open" : "withdraw"}
        aria-label="What to do with them"
      >
        <p role="status">
          {chosen.length === 0
            ? "No token is selected."
            : `${counted(chosen.length, "token")} selected.`}
        </p>
        {chosen.length > 0 && (
          <>
            <div class="choices">
              {relayed > 0 && (
                <Button
                  main
                  disabled={busy}
                  onClick={() => run(acts.byRelay)}
                  text="Withdraw by the operator"
                />
              )}
              <Button
                main={relayed === 0}
                disabled={busy}
                onClick={() => run(acts.byOwnTransaction)}
                text="Withdraw by my own transaction"
              />
            </div>
            {relayed > 0 && (
              <details>
                <summary>Give away or redeem</summary>
                <form class="choices" autocomplete="off" onSubmit={give}>
                  <input name="receiver" aria-label="Receiver's address" placeholder="0x…" />
                  <Button submit disabled={busy} text="Give to this address" />
                  <Button disabled={busy} onClick={() => ask(null)} text="Redeem" />
                </form>
              </details>
            )}
          </>
        )}
        {busy && <p class="quiet">Answer the request in your wallet…</p>}
        {question && (
          <acts.Question
            vaults={chosen}
            to={question.to}
            onSign={() => run((by) => acts.giveAway(by, question.to))}
            onCancel={() => setQuestion(null)}
          />
        )}
        {notices.map((text) => (
          <Notice key={text} problem>
            {text}
          </Notice>
        ))}
      </section>
    </>
  );
}

interface CardProps {
  readonly vault: VaultContent;
  readonly signedIn: SignedIn;
  readonly standing: acts.Standing | undefined;
  readonly isSelected: boolean;
  /** Whether the owner wants images of other hosts. */
  readonly asked: boolean;
  onSelect(isOn: boolean): void;
  onHosted(): void;
}

function Card({ vault, signedIn, standing, isSelected, asked, onSelect, onHosted }: CardProps) {
  const { vaultId, blob, amount, chainId, assetType } = vault;
  const metadata = useMetadata(vault);
  const { error, run } = useAction();
  const [isSaved, setSaved] = useState(false);
  const image = textIn(metadata, "image");
  useEffect(() => {
    if (image !== null && isImage(image) && !image.startsWith("data:")) onHosted();
  }, [image]);
  const text = amountText(amount, blob, metadata);
  const id = blob === "0x" ? null : blobText(blob);
  const label = id === null ? text : `token ${id}`;
  const name = textIn(metadata, "name");
  const save = async () => {
    const response = await asOwner(signedIn, `/owner/v1/vaults/${vaultId}/exit-kit`);
    download(`exit-kit-${vaultId}.json`, await response.blob());
    setSaved(true);
  };
  const kind = standing?.kind ?? "ready";
  return (
    <li class={`token ${kind}`}>
      <Picture source={image} name="" asked={asked} />
      <div>
        <h2>
          <bdi>{name ?? (id === null ? "Tokens" : `Token ${id}`)}</bdi>
        </h2>
        <p class="amount">
          {id === null ? <bdi>{text}</bdi> : `Token ${id}${amount === 1n ? "" : `, ${text} of it`}`}
        </p>
        <p class="standing">{standing?.text ?? "…"}</p>
        <div class="choices">
          <label class="select">
            <input
              type="checkbox"
              aria-label={`Select ${label}`}
              checked={isSelected}
              disabled={kind !== "ready"}
              onChange={(event) => onSelect(event.currentTarget.checked)}
            />
            Select
          </label>
          <Button
            aria-label={`Download the exit kit of ${label}`}
            onClick={() => run(save)}
            text="Exit kit"
          />
          {isSaved && (
            <span role="status" class="quiet">
              saved
            </span>
          )}
        </div>
        {error && <Notice problem>{sentenceOf(error)}</Notice>}
        <details>
          <summary>Details</summary>
          <Facts
            of={[
              ["Vault", <VaultLink key="vault" of={vaultId} />],
              ["Units", amount.toLocaleString("en")],
              ["Minting blob", blobText(blob)],
              ["Asset type", code(assetType)],
              ["Chain", String(chainId)],
            ]}
          />
        </details>
      </div>
    </li>
  );
}

/**
 * Of each vault of the settlement's chain the units that L1 has paid; empty without a source of L1
 * data.
 */
async function paidOnL1(vaults: readonly VaultContent[]): Promise<ReadonlyMap<bigint, bigint>> {
  const [contract, { chainId }] = await Promise.all([l1(), settlement()]);
  if (contract === null) return new Map();
  const here = vaults.filter((vault) => String(vault.chainId) === chainId);
  const paid = [...Map.groupBy(here, ({ assetType }) => assetType)].map(
    async ([assetType, some]) => {
      const registered = await contract.registration(BigInt(chainId), assetType);
      const paidOf = async (vaultId: bigint) =>
        registered ? contract.withdrawn(vaultId, registered.standard) : 0n;
      return Promise.all(
        some.map(async ({ vaultId }) => [vaultId, await paidOf(vaultId)] as const),
      );
    },
  );
  return new Map((await Promise.all(paid)).flat());
}

async function newestOf(signedIn: SignedIn, vaults: readonly VaultContent[]) {
  const query = vaults.map(({ vaultId }) => `vaultId=${vaultId}`).join("&");
  const { vaults: named } = await jsonAsOwner<OwnersWithdrawals>(
    signedIn,
    `/owner/v1/withdrawals?${query}`,
  );
  return new Map(
    named.flatMap(({ vaultId, withdrawal }) =>
      withdrawal === null ? [] : [[BigInt(vaultId), withdrawal] as const],
    ),
  );
}
