import type { ComponentChildren } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Hex } from "../../../core/protocol/verifier.ts";
import { counted } from "../shared/format.ts";
import { Button, More, Notice, onSent } from "../shared/parts.tsx";
import { isImage, Picture } from "../shared/tokens.tsx";
import type { OwnVault } from "./api.ts";
import type { Own } from "./own-state.ts";
import { type Holding, leftOf, type ShownStanding, useLook } from "./own-vaults.tsx";
import * as acts from "./owner-acts.tsx";
import { settings } from "./source.tsx";

const PAGE = 24;
const ADDRESS = /^0x(?!0{40}$)[0-9a-fA-F]{40}$/;

export const relayText = () =>
  settings.relayVaults === 0
    ? "You pay the gas of your own transaction and depend on nobody. The tokens go to your own address."
    : `You sign once. The operator sends the transaction and pays the gas of up to ${counted(settings.relayVaults, "token")} a day. By your own transaction you pay it and depend on nobody. The tokens go to your own address.`;

/** The receiver's address in a sent form; says what is wrong with it. */
export function receiverIn(fields: FormData, own: Own): Hex | null {
  const receiver = String(fields.get("receiver")).trim();
  if (ADDRESS.test(receiver)) return receiver as Hex;
  own.say(["Enter the receiver's address: 0x and 40 hex digits."]);
  return null;
}

/** All tokens of the owner, to choose from. */
export function Overview({ own }: { own: Own }) {
  const { holdings, isWhole, asked, busy, run, standingOf } = own;
  const [isHosted, setHosted] = useState(false);
  const [question, setQuestion] = useState<{ readonly to: Hex | null } | null>(null);
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const selected = useRef(new Set<string>()).current;
  const mine = holdings.filter(({ held }) => held.length > 0);
  const gone = holdings.filter((each) => each.gone.length > 0);
  const arriving = mine.filter(({ held }) => held.every(({ standing }) => standing === "arriving"));
  const readyOf = ({ held }: Holding) => held.filter((vault) => standingOf(vault).kind === "ready");
  const ready = mine.filter((each) => readyOf(each).length > 0);
  const chosen = ready.filter(({ path }) => selected.has(path));
  const vaults = chosen.flatMap(readyOf);
  const select = (some: readonly Holding[], isOn: boolean) => {
    for (const { path } of some) isOn ? selected.add(path) : selected.delete(path);
    setQuestion(null);
    redraw(null);
  };
  const act = (work: (act: acts.Act) => Promise<readonly string[]>) => {
    setQuestion(null);
    void run(work);
  };
  const give = onSent((fields) => {
    const to = receiverIn(fields, own);
    setQuestion(to && { to });
  });
  const cards = (label: string, some: readonly Holding[], isGone: boolean) => (
    <Cards label={label} holdings={some}>
      {(holding) => (
        <Card
          key={holding.path}
          own={own}
          holding={holding}
          isGone={isGone}
          isReady={!isGone && ready.includes(holding)}
          isSelected={selected.has(holding.path)}
          onSelect={(isOn) => select([holding], isOn)}
          onHosted={() => setHosted(true)}
        />
      )}
    </Cards>
  );
  if (holdings.length === 0)
    return isWhole ? <Nothing /> : <p class="quiet">Looking for your tokens…</p>;
  return (
    <>
      <p class="quiet" role="status">
        {counted(mine.length, "token")}
        {arriving.length > 0 && `, ${arriving.length.toLocaleString("en")} on the way to you`}
        {gone.length > 0 && `; ${gone.length.toLocaleString("en")} gone`}
        {isWhole ? "." : "; looking for more…"}
      </p>
      <div class="choices">
        {ready.length > 0 && <Button onClick={() => select(ready, true)} text="Select all" />}
        {isHosted && !asked && <Button onClick={own.onAsked} text="Show images from their hosts" />}
      </div>
      {cards("My tokens", mine, false)}
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
              {settings.relayVaults > 0 && (
                <Button
                  main
                  disabled={busy}
                  onClick={() => act((by) => acts.byRelay(by, vaults))}
                  text="Withdraw by the operator"
                />
              )}
              <Button
                main={settings.relayVaults === 0}
                disabled={busy}
                onClick={() => act((by) => acts.byOwnTransaction(by, vaults))}
                text="Withdraw by my own transaction"
              />
            </div>
            {settings.relayVaults > 0 && vaults.every(({ transferable }) => transferable) && (
              <details>
                <summary>Give away or redeem</summary>
                <form class="choices" autocomplete="off" onSubmit={give}>
                  <input name="receiver" aria-label="Receiver's address" placeholder="0x…" />
                  <Button submit disabled={busy} text="Give to this address" />
                  <Button disabled={busy} onClick={() => setQuestion({ to: null })} text="Redeem" />
                </form>
              </details>
            )}
            <p class="quiet">{relayText()}</p>
          </>
        )}
        {question && (
          <acts.Question
            onSign={() => act((by) => acts.giveAway(by, acts.whole(vaults), question.to))}
            onCancel={() => setQuestion(null)}
          >
            <acts.GiftText parts={acts.whole(vaults)} to={question.to} />
          </acts.Question>
        )}
        <Notices own={own} />
      </section>
      {gone.length > 0 && (
        <>
          <h2>Gone</h2>
          {cards("Gone", gone, true)}
        </>
      )}
    </>
  );
}

/** That the wallet is asked, and what was refused. */
export function Notices({ own: { busy, notices } }: { own: Own }) {
  return (
    <>
      {busy && <p class="quiet">Answer the request in your wallet…</p>}
      {notices.map((text) => (
        <Notice key={text} problem>
          {text}
        </Notice>
      ))}
    </>
  );
}

function Nothing() {
  return (
    <div class="nothing">
      <svg viewBox="0 0 96 64" aria-hidden="true">
        <path d="M6 50h84M14 50V22h68v28" />
        <path d="M24 42h12v-8H24zM42 42h12v-8H42zM60 42h12v-8H60z" stroke-dasharray="3 3" />
      </svg>
      <p role="status">No token is yours yet. A new one appears here by itself.</p>
      <p class="quiet">
        Tokens come from the application that you play or shop with: give it the address that you
        signed in with.
      </p>
    </div>
  );
}

interface CardsProps {
  label: string;
  holdings: readonly Holding[];
  children: (holding: Holding) => ComponentChildren;
}

function Cards({ label, holdings, children }: CardsProps) {
  const [count, setCount] = useState(PAGE);
  if (holdings.length === 0) return null;
  return (
    <>
      <ul class="tokens" aria-label={label}>
        {holdings.slice(0, count).map(children)}
      </ul>
      <More left={holdings.length - count} show={() => setCount(count + PAGE)} />
    </>
  );
}

interface CardProps {
  readonly own: Own;
  readonly holding: Holding;
  /** Whether the card is of what the owner has no more. */
  readonly isGone: boolean;
  readonly isReady: boolean;
  readonly isSelected: boolean;
  onSelect(isOn: boolean): void;
  onHosted(): void;
}

function Card({ own, holding, isGone, isReady, isSelected, onSelect, onHosted }: CardProps) {
  const vaults = isGone ? holding.gone : holding.held;
  const { title, label, image, amountOf } = useLook(holding.newest);
  const { tokenId, standard } = holding.newest;
  useEffect(() => {
    if (image !== null && isImage(image) && !image.startsWith("data:")) onHosted();
  }, [image]);
  const units = isGone ? vaults.reduce((sum, { amount }) => sum + amount, 0n) : leftOf(vaults);
  const amount = standard === "erc721" ? null : amountOf(units);
  const standing = summaryOf(vaults, own.standingOf, amountOf);
  return (
    <li class={`token ${standing.kind}`}>
      <Picture source={image} name="" asked={own.asked} seed={holding.path} />
      <div>
        <h2>
          <a href={`#/owner/${holding.path}`}>
            <bdi>{title}</bdi>
          </a>
        </h2>
        {title !== label && <p class="quiet">{label}</p>}
        {amount !== null && (
          <p class="amount">
            <bdi>{amount}</bdi>
          </p>
        )}
        <p class="standing">{standing.text}</p>
        {!isGone && (
          <label class="select">
            <input
              type="checkbox"
              aria-label={`Select ${tokenId === null ? (amount ?? label) : label}`}
              checked={isSelected && isReady}
              disabled={!isReady}
              onChange={(event) => onSelect(event.currentTarget.checked)}
            />
            Select
          </label>
        )}
      </div>
    </li>
  );
}

/** How several vaults of one token stand together. */
export function summaryOf(
  vaults: readonly OwnVault[],
  standingOf: Own["standingOf"],
  amountOf: (units: bigint) => string,
): ShownStanding {
  const [first, ...more] = vaults;
  if (first === undefined) return { text: "It is gone.", kind: "spent" };
  const { text, kind } = standingOf(first);
  const standings = vaults.map((vault) => ({ vault, ...standingOf(vault) }));
  if (more.length === 0) return { text, kind };
  const ready = standings.filter((each) => each.kind === "ready");
  const waiting = standings.filter((each) => each.kind === "waiting");
  if (ready.length + waiting.length === 0) return { text: goneText(standings), kind: "spent" };
  const onTheWay = leftOf(waiting.map(({ vault }) => vault));
  if (waiting.length === 0) return { text: "You can use all of it.", kind: "ready" };
  return {
    text: `${amountOf(onTheWay)} of it on the way.`,
    kind: ready.length === 0 ? "waiting" : "ready",
  };
}

/** The fates of several vaults, each once. */
function goneText(standings: readonly ShownStanding[]): ComponentChildren {
  return [...new Set(standings.map(({ text }) => text))].flatMap((text, i) =>
    i === 0 ? [text] : [" ", text],
  );
}
