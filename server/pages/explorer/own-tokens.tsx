import type { ComponentChildren } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Hex } from "../../../core/protocol/verifier.ts";
import { blobText, counted, sentenceOf } from "../shared/format.ts";
import {
  Button,
  code,
  download,
  Facts,
  Failure,
  Later,
  More,
  Notice,
  onSent,
  useAction,
} from "../shared/parts.tsx";
import { amountText, isImage, Picture, textIn, useMetadata } from "../shared/tokens.tsx";
import { asOwner, type OwnVault, type SignedIn } from "./api.ts";
import { isGone, type Standing, standingAt, useOwnVaults } from "./own-vaults.tsx";
import * as acts from "./owner-acts.tsx";
import { settings } from "./source.tsx";
import { VaultLink } from "./transfer-view.tsx";
import { proofOfOwn } from "./vault.tsx";

const PAGE = 24;
const ADDRESS = /^0x(?!0{40}$)[0-9a-fA-F]{40}$/;

export function OwnTokens({ signedIn }: { signedIn: SignedIn }) {
  const own = useOwnVaults(signedIn);
  const retry = () => void own.reload();
  return (
    <>
      {own.value !== undefined && <Tokens {...{ signedIn, ...own.value }} />}
      {own.error !== null && <Failure error={own.error} retry={retry} />}
      {own.value === undefined && own.error === null && (
        <p class="quiet" role="status">
          Looking for your tokens…
        </p>
      )}
    </>
  );
}

interface TokensProps {
  signedIn: SignedIn;
  vaults: readonly OwnVault[];
  /** Whether these are all vaults of the owner. */
  isWhole: boolean;
}

function Tokens({ signedIn, vaults, isWhole }: TokensProps) {
  const [isHosted, setHosted] = useState(false);
  const [asked, setAsked] = useState(false);
  /** The tokens that the owner's wallet is asked about now. */
  const [acting, setActing] = useState<ReadonlySet<OwnVault>>(new Set());
  const busy = acting.size > 0;
  const [notices, setNotices] = useState<readonly string[]>([]);
  const [question, setQuestion] = useState<{ readonly to: Hex | null } | null>(null);
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const { told, selected, given } = useRef({
    /** Standings that acts have told, and when the server last knew something new of each token. */
    told: new Map<bigint, Standing & { readonly since: string }>(),
    selected: new Set<bigint>(),
    given: new Map() as acts.Act["given"],
  }).current;
  const relayed = settings.relayVaults;
  const standings = new Map(vaults.map((vault) => [vault.vaultId, standingOf(vault)]));
  const isReady = ({ vaultId }: OwnVault) => standings.get(vaultId)?.kind === "ready";
  const mine = vaults.filter((vault) => !isGone(vault));
  const gone = vaults.filter(isGone);
  const arriving = mine.filter(({ standing }) => standing === "arriving").length;
  const ready = mine.filter(isReady);
  const chosen = ready.filter(({ vaultId }) => selected.has(vaultId));
  const act: acts.Act = { signedIn, vaults: chosen, given, change: set };
  useEffect(() => void acts.followGiven(act, vaults).catch(() => undefined), [vaults]);

  /** The word of an act counts until the server knows more. */
  function standingOf(vault: OwnVault): Standing {
    const said = told.get(vault.vaultId);
    const isKnown = isGone(vault) || (said?.kind !== "spent" && said?.since !== vault.updatedAt);
    return said === undefined || isKnown ? standingAt(vault, relayed > 0) : said;
  }

  function set(vaultId: bigint, text: Standing["text"], kind: Standing["kind"]): void {
    const since = vaults.find((each) => each.vaultId === vaultId)?.updatedAt ?? "";
    told.set(vaultId, { text, kind, since });
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

  const give = onSent((fields) => ask(String(fields.get("receiver")).trim()));
  const cards = (label: string, some: readonly OwnVault[]) => (
    <Cards label={label} vaults={some}>
      {(vault) => (
        <Card
          key={vault.vaultId}
          vault={vault}
          signedIn={signedIn}
          asked={asked}
          standing={standings.get(vault.vaultId) as Standing}
          isSelected={selected.has(vault.vaultId)}
          onSelect={(isOn) => select([vault.vaultId], isOn)}
          onHosted={() => setHosted(true)}
        />
      )}
    </Cards>
  );
  return (
    <>
      <p class="quiet" role="status">
        {vaults.length === 0
          ? "No token is yours yet. A new one appears here by itself."
          : [
              counted(mine.length, "token"),
              arriving > 0 ? `, ${arriving.toLocaleString("en")} of them on the way to you` : "",
              gone.length > 0 ? `; ${gone.length.toLocaleString("en")} gone` : "",
              isWhole ? "." : "; looking for more…",
            ]}
      </p>
      <div class="choices">
        {ready.length > 0 && (
          <Button
            onClick={() =>
              select(
                ready.map(({ vaultId }) => vaultId),
                true,
              )
            }
            text="Select all"
          />
        )}
        {isHosted && !asked && (
          <Button onClick={() => setAsked(true)} text="Show images from their hosts" />
        )}
      </div>
      {cards("My tokens", mine)}
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
            <p class="quiet">
              {relayed === 0
                ? "You pay the gas of your own transaction and depend on nobody. The tokens go to your own address."
                : `You sign once. The operator sends the transaction and pays the gas of up to ${counted(relayed, "token")} a day. By your own transaction you pay it and depend on nobody. The tokens go to your own address.`}
            </p>
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
      {gone.length > 0 && (
        <>
          <h2>Gone</h2>
          {cards("Gone", gone)}
        </>
      )}
    </>
  );
}

interface CardsProps {
  label: string;
  vaults: readonly OwnVault[];
  children: (vault: OwnVault) => ComponentChildren;
}

function Cards({ label, vaults, children }: CardsProps) {
  const [count, setCount] = useState(PAGE);
  if (vaults.length === 0) return null;
  return (
    <>
      <ul class="tokens" aria-label={label}>
        {vaults.slice(0, count).map(children)}
      </ul>
      <More left={vaults.length - count} show={() => setCount(count + PAGE)} />
    </>
  );
}

interface CardProps {
  readonly vault: OwnVault;
  readonly signedIn: SignedIn;
  readonly standing: Standing;
  readonly isSelected: boolean;
  /** Whether the owner wants images of other hosts. */
  readonly asked: boolean;
  onSelect(isOn: boolean): void;
  onHosted(): void;
}

function Card({ vault, signedIn, standing, isSelected, asked, onSelect, onHosted }: CardProps) {
  const { vaultId, blob, amount, chainId, assetType, decimals, quantum } = vault;
  const metadata = { decimals, quantum, ...useMetadata(vault) };
  const { error, run } = useAction();
  const [isSaved, setSaved] = useState(false);
  const [isOpened, setOpened] = useState(false);
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
  return (
    <li class={`token ${standing.kind}`}>
      <Picture source={image} name="" asked={asked} />
      <div>
        <h2>
          <bdi>{name ?? (id === null ? "Tokens" : `Token ${id}`)}</bdi>
        </h2>
        <p class="amount">
          {id === null ? <bdi>{text}</bdi> : `Token ${id}${amount === 1n ? "" : `, ${text} of it`}`}
        </p>
        <p class="standing">{standing.text}</p>
        <div class="choices">
          <label class="select">
            <input
              type="checkbox"
              aria-label={`Select ${label}`}
              checked={isSelected}
              disabled={standing.kind !== "ready"}
              onChange={(event) => onSelect(event.currentTarget.checked)}
            />
            Select
          </label>
          {vault.standing !== "arriving" && !isGone(vault) && (
            <Button
              aria-label={`Download the exit kit of ${label}`}
              onClick={() => run(save)}
              text="Exit kit"
            />
          )}
          {isSaved && (
            <span role="status" class="quiet">
              saved
            </span>
          )}
        </div>
        {error && <Notice problem>{sentenceOf(error)}</Notice>}
        <details onToggle={(event) => setOpened(event.currentTarget.open)}>
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
          {isOpened && <Later load={() => proofOfOwn(vault)} />}
        </details>
      </div>
    </li>
  );
}
