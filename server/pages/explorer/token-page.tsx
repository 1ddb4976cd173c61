import { useState } from "preact/hooks";
import { type Hex, quantizedAmount } from "../../../core/protocol/verifier.ts";
import { counted, mintingBlobText, sentenceOf } from "../shared/format.ts";
import {
  Action,
  Button,
  code,
  download,
  Facts,
  Later,
  More,
  onSent,
  Titled,
  When,
} from "../shared/parts.tsx";
import { Picture } from "../shared/tokens.tsx";
import { asOwner, type MarketAsset, type OwnVault, readHistory } from "./api.ts";
import { Unlist } from "./market.tsx";
import type { Own } from "./own-state.ts";
import { Notices, receiverIn, relayText, summaryOf } from "./own-tokens.tsx";
import { type Holding, isOnL1, leftOf, useLook } from "./own-vaults.tsx";
import * as acts from "./owner-acts.tsx";
import { type Deal, DealText, prepareSale, signDeal, vaultWith } from "./owner-trades.tsx";
import { Back } from "./return.tsx";
import { settings } from "./source.tsx";
import { HistoryFacts, VaultLink } from "./transfer-view.tsx";
import { proofOfOwn } from "./vault.tsx";

// The page of one token: what it is, what its owner can do with it, where it comes from, its proof.

export function TokenPage({ own, path }: { own: Own; path: string }) {
  const holding = own.holdings.find((each) => each.path === path);
  return (
    <>
      <p class="back">
        <a href="#/owner">← My tokens</a>
      </p>
      {holding && <Token own={own} holding={holding} />}
      {!holding && (
        <>
          <h1>Not yours</h1>
          <p class="quiet">
            {own.isWhole ? "None of your tokens is at this address." : "Looking for your tokens…"}
          </p>
        </>
      )}
    </>
  );
}

function Token({ own, holding }: { own: Own; holding: Holding }) {
  const { newest, held, gone } = holding;
  const { title, label, image, description, amountOf } = useLook(newest);
  const vaults = held.length > 0 ? held : gone;
  const standing = summaryOf(vaults, own.standingOf, amountOf);
  return (
    <Titled>
      <div class="token-head">
        <Picture source={image} name={title} asked={own.asked} seed={holding.path} />
        <div>
          <h1>
            <bdi>{title}</bdi>
          </h1>
          {title !== label && <p class="quiet">{label}</p>}
          {newest.standard !== "erc721" && held.length > 0 && (
            <p class="figure">
              <bdi>{amountOf(leftOf(held))}</bdi>
            </p>
          )}
          <p class="standing">{standing.text}</p>
          {image !== null && !image.startsWith("data:") && !own.asked && (
            <Button onClick={own.onAsked} text="Show the image from its host" />
          )}
        </div>
      </div>
      <Sheet own={own} holding={holding} />
      {description !== null && <p>{description}</p>}
      <h2>History</h2>
      <History vaults={[...held, ...gone]} own={own} amountOf={amountOf} />
      <details>
        <summary>Proof and details, for auditors</summary>
        <Vaults vaults={[...held, ...gone]} own={own} />
      </details>
    </Titled>
  );
}

/** The owner can do this with a token. */
type Deed = keyof typeof DEEDS;

const DEEDS = {
  give: "Give away",
  sell: "Sell",
  withdraw: "Take to L1",
  back: "Bring back from L1",
  renew: "Merge into one vault",
  redeem: "Redeem",
} as const;

/** The deeds that are possible now; the first is what the owner most likely wants. */
function deedsOf(own: Own, holding: Holding, ready: readonly OwnVault[]): Deed[] {
  const { standard, transferable, assetId } = holding.newest;
  const isReady = ready.length > 0;
  const canGive = isReady && transferable && settings.relayVaults > 0;
  const canSell = isReady && transferable && currenciesFor(own, assetId).length > 0;
  const possible: Readonly<Record<Deed, boolean>> = {
    give: canGive,
    sell: canSell,
    withdraw: isReady,
    back:
      holding.held.length > 0
        ? standard !== "erc721"
        : holding.gone.some(({ standing: fate }) => fate === "withdrawn"),
    renew: renewable(ready).length > 0,
    redeem: canGive,
  };
  return (Object.keys(DEEDS) as Deed[]).filter((deed) => possible[deed]);
}

/** The vaults that a renewal would gain something for. */
function renewable(ready: readonly OwnVault[]): readonly OwnVault[] {
  const onL1 = ready.filter(({ status }) => isOnL1(status));
  return onL1.length > 1 || onL1.some(({ hops }) => hops > 0) ? onL1 : [];
}

/**
 * The deeds: one above all, which a phone shows at its lower edge, and the others behind a click.
 */
function Sheet({ own, holding }: { own: Own; holding: Holding }) {
  const [deed, setDeed] = useState<Deed | null>(null);
  const ready = holding.held.filter((vault) => own.standingOf(vault).kind === "ready");
  const ids = new Set(holding.held.map(({ vaultId }) => String(vaultId)));
  const offers = own.orders.filter(({ status, vaultId }) => status === "open" && ids.has(vaultId));
  const deeds = deedsOf(own, holding, ready);
  const others = offers.length > 0 ? deeds : deeds.slice(1);
  const [first] = deeds;
  const end = () => setDeed(null);
  const choose = (next: Deed) => {
    own.say([]);
    setDeed(next);
  };
  const button = (each: Deed, main: boolean) => (
    <Button
      key={each}
      main={main}
      disabled={own.busy}
      onClick={() => choose(each)}
      text={each === "renew" && ready.length === 1 ? "Begin anew" : DEEDS[each]}
    />
  );
  const form = { own, holding, ready, end };
  if (first === undefined && deed === null && own.notices.length === 0) return null;
  return (
    <section class="sheet" aria-label="What you can do">
      {deed === null && first !== undefined && (
        <>
          {offers.map((order) => (
            <Unlist key={order.orderId} own={own} order={order} main />
          ))}
          {offers.length === 0 && button(first, true)}
          {others.length > 0 && (
            <details>
              <summary>More</summary>
              <div class="choices">{others.map((each) => button(each, false))}</div>
            </details>
          )}
        </>
      )}
      {deed === "give" && <Give {...form} />}
      {deed === "sell" && <Sell {...form} />}
      {deed === "redeem" && <Sign {...form} parts={acts.whole(ready)} to={null} />}
      {deed === "withdraw" && <Withdraw {...form} />}
      {deed === "renew" && <Renew {...form} />}
      {deed === "back" && (
        <Back own={own} asset={holding.newest} tokenId={holding.newest.tokenId} onCancel={end} />
      )}
      <Notices own={own} />
    </section>
  );
}

interface FormProps {
  own: Own;
  holding: Holding;
  /** The vaults that can be used now. */
  ready: readonly OwnVault[];
  end: () => void;
}

/** Units in a form's field for whole tokens; throws a sentence. */
function unitsIn(fields: FormData, name: string, of: Pick<OwnVault, "decimals" | "quantum">) {
  const text = String(fields.get(name)).trim().replaceAll(",", "");
  try {
    return quantizedAmount(text, { decimals: of.decimals, quantum: BigInt(of.quantum) });
  } catch (error) {
    throw new Error(`The amount ${sentenceOf(error)}.`, { cause: error });
  }
}

function Give(props: FormProps) {
  const { own, holding, ready, end } = props;
  const [gift, setGift] = useState<{ parts: readonly acts.MovedVault[]; to: Hex } | null>(null);
  const { newest } = holding;
  const { amountOf } = useLook(newest);
  const movable = ready.filter(({ hops }) => hops < 8);
  const all = leftOf(movable);
  const send = onSent((fields) => {
    const to = receiverIn(fields, own);
    if (to === null) return;
    try {
      const amount = fields.get("amount");
      const units = amount === null || amount === "" ? all : unitsIn(fields, "amount", newest);
      const parts = acts.partsOf(movable, units);
      own.say(parts === null ? [`You can give ${amountOf(all)} at most now.`] : []);
      setGift(parts && { parts, to });
    } catch (error) {
      own.say([sentenceOf(error)]);
    }
  });
  if (gift !== null) return <Sign {...props} {...gift} />;
  return (
    <form class="claim" autocomplete="off" onSubmit={send}>
      <label>
        Receiver's address
        <input name="receiver" placeholder="0x…" />
      </label>
      {all > 1n && (
        <label>
          Amount, of {amountOf(all)}
          <input name="amount" inputMode="decimal" placeholder="all" />
        </label>
      )}
      <div class="choices">
        <Button submit main text="Continue" />
        <Button onClick={end} text="Cancel" />
      </div>
    </form>
  );
}

interface SignProps extends FormProps {
  parts: readonly acts.MovedVault[];
  to: Hex | null;
}

function Sign({ own, end, parts, to }: SignProps) {
  const sign = async () => {
    if (await own.run((act) => acts.giveAway(act, parts, to))) end();
  };
  return (
    <acts.Question onSign={sign} onCancel={end}>
      <acts.GiftText parts={parts} to={to} />
    </acts.Question>
  );
}

function Withdraw({ own, ready, end }: FormProps) {
  const by = async (work: typeof acts.byRelay) => {
    if (await own.run((act) => work(act, ready))) end();
  };
  const isRelayed = settings.relayVaults > 0;
  return (
    <>
      <p class="quiet">{relayText()} Transfers and offers of it end.</p>
      <div class="choices">
        {isRelayed && (
          <Button
            main
            disabled={own.busy}
            onClick={() => by(acts.byRelay)}
            text="Withdraw by the operator"
          />
        )}
        <Button
          main={!isRelayed}
          disabled={own.busy}
          onClick={() => by(acts.byOwnTransaction)}
          text="Withdraw by my own transaction"
        />
        <Button onClick={end} text="Cancel" />
      </div>
    </>
  );
}

function Renew({ own, ready, end }: FormProps) {
  const vaults = renewable(ready);
  const send = async () => {
    if (await own.run((act) => acts.renew(act, vaults))) end();
  };
  return (
    <>
      <p class="quiet">
        {`Your own transaction makes one vault of ${counted(vaults.length, "vault")}, and you pay its gas. The new vault can be given and traded as a whole, and counts no transfers yet. Offers and transfers of the old ones that L1 does not have yet end.`}
      </p>
      <div class="choices">
        <Button main disabled={own.busy} onClick={send} text="Send my transaction" />
        <Button onClick={end} text="Cancel" />
      </div>
    </>
  );
}

/** The fungible tokens that an asset can be sold for. */
function currenciesFor({ markets }: Own, assetId: string): readonly MarketAsset[] {
  return markets
    .filter(({ assets }) => assets.some((each) => each.assetId === assetId))
    .flatMap(({ assets }) => assets)
    .filter((each) => each.standard === "erc20" && each.transferable && each.assetId !== assetId);
}

function Sell({ own, holding, ready, end }: FormProps) {
  const [deal, setDeal] = useState<Deal | null>(null);
  const { newest } = holding;
  const { amountOf } = useLook(newest);
  const currencies = currenciesFor(own, newest.assetId);
  const all = leftOf(ready);
  const prepare = onSent((fields) =>
    own.run(async () => {
      const currency = currencies.find(({ assetId }) => assetId === fields.get("currency"));
      if (currency === undefined) throw new Error("Choose what you want for it.");
      const price = unitsIn(fields, "price", currency);
      const units = all > 1n ? unitsIn(fields, "amount", newest) : all;
      const vault = vaultWith(ready, units);
      if (vault === undefined)
        throw new Error(
          `One vault must have all of it. You have ${amountOf(all)} in ${counted(ready.length, "vault")}: merge them first, or sell less.`,
        );
      setDeal(await prepareSale(own.signedIn, { vault, units, currency, price, taker: null }));
      return [];
    }),
  );
  const sign = async (asked: Deal) => {
    if (await own.run((act) => signDeal(act, asked))) end();
  };
  if (deal !== null)
    return (
      <acts.Question onSign={() => sign(deal)} onCancel={end}>
        <DealText deal={deal} />
      </acts.Question>
    );
  return (
    <form class="claim" autocomplete="off" onSubmit={prepare}>
      {all > 1n && (
        <label>
          Amount, of {amountOf(all)}
          <input name="amount" inputMode="decimal" placeholder="12.5" required />
        </label>
      )}
      <label>
        Price
        <input name="price" inputMode="decimal" placeholder="250" required />
      </label>
      <label>
        In
        <select name="currency">
          {currencies.map(({ assetId, name, symbol }) => (
            <option key={assetId} value={assetId}>
              {`${name} (${symbol})`}
            </option>
          ))}
        </select>
      </label>
      <div class="choices">
        <Button submit main disabled={own.busy} text="Continue" />
        <Button onClick={end} text="Cancel" />
      </div>
    </form>
  );
}

const PAGE = 10;

interface HistoryProps {
  own: Own;
  vaults: readonly OwnVault[];
  amountOf: (units: bigint) => string;
}

/** Lists what came and went, the newest first. */
function History({ own, vaults, amountOf }: HistoryProps) {
  const [count, setCount] = useState(PAGE);
  const [newest] = vaults;
  const byTime = [...vaults].sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  return (
    <>
      <ol class="history">
        {byTime.slice(0, count).map((vault) => (
          <li key={vault.vaultId}>
            <When at={vault.createdAt} />
            <span>
              {`${cameBy(vault)}${vault.standard === "erc721" ? "" : `: ${amountOf(vault.amount)}`}. `}
              {vaults.length > 1 && own.standingOf(vault).text}
            </span>
          </li>
        ))}
      </ol>
      <More left={byTime.length - count} show={() => setCount(count + PAGE)} />
      {newest?.standard === "erc721" && newest.hops > 0 && (
        <Later load={async () => <HistoryFacts of={await readHistory(newest.vaultId)} />} />
      )}
    </>
  );
}

function cameBy({ batchId, hops }: OwnVault): string {
  if (batchId.startsWith("made-")) return "Made by L1, of a trade, a renewal or a token from L1";
  return hops === 0 ? "Minted" : "Came by a transfer";
}

function Vaults({ own, vaults }: { own: Own; vaults: readonly OwnVault[] }) {
  const [count, setCount] = useState(PAGE);
  return (
    <>
      <div class="cards">
        {vaults.slice(0, count).map((vault) => (
          <Details key={vault.vaultId} own={own} vault={vault} />
        ))}
      </div>
      <More left={vaults.length - count} show={() => setCount(count + PAGE)} />
    </>
  );
}

function Details({ own, vault }: { own: Own; vault: OwnVault }) {
  const { vaultId, batchId, amount, mintingBlob, assetType, contractAddress, chainId, hops } =
    vault;
  const [isAsked, setAsked] = useState(false);
  const save = async () => {
    const response = await asOwner(own.signedIn, `/owner/v1/vaults/${vaultId}/exit-kit`);
    download(`exit-kit-${vaultId}.json`, await response.blob());
  };
  return (
    <div class="card">
      <Facts
        of={[
          ["Vault", <VaultLink key="vault" of={vaultId} />],
          [
            "Batch",
            batchId.startsWith("made-") ? (
              batchId
            ) : (
              <a key="batch" href={`#/batches/${batchId}`}>
                {batchId}
              </a>
            ),
          ],
          ["Units", amount.toLocaleString("en")],
          ["Transfers", hops === 0 ? null : String(hops)],
          ["Minting blob", mintingBlobText(mintingBlob)],
          ["Token", code(contractAddress)],
          ["Asset type", code(assetType)],
          ["Chain", String(chainId)],
        ]}
      />
      <div class="choices">
        {!isAsked && <Button onClick={() => setAsked(true)} text="Check the proof" />}
        {vault.standing === "held" && isOnL1(vault.status) && (
          <Action text="Save the exit kit" work={save} />
        )}
      </div>
      {isAsked && <Later load={() => proofOfOwn(vault)} />}
    </div>
  );
}
