import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Action, Button, Notice, OnDemand, Shown, useLoad } from "../shared/parts.tsx";
import { Picture, textIn, useMetadata } from "../shared/tokens.tsx";
import { cancelOrder, type Market, type OwnersOrder, readOffers } from "./api.ts";
import type { Own } from "./own-state.ts";
import { Notices } from "./own-tokens.tsx";
import { CALM_MS, dayOf, itemText, leftOf } from "./own-vaults.tsx";
import * as acts from "./owner-acts.tsx";
import { type Deal, DealText, prepareFill, signDeal, vaultWith } from "./owner-trades.tsx";

/** Shows what other owners offer, and the owner's own offers. */
export function MarketPage({ own }: { own: Own }) {
  const [deal, setDeal] = useState<Deal | null>(null);
  const mine = own.orders.filter(({ status }) => status === "open" || status === "filled");
  const buy = (order: OwnersOrder) =>
    own.run(async () => {
      setDeal(await prepareFill(own.signedIn, order, payingVault(own, order)));
      return [];
    });
  const sign = async (asked: Deal) => {
    setDeal(null);
    await own.run((act) => signDeal(act, asked));
  };
  return (
    <>
      {mine.length > 0 && (
        <>
          <h2>Your offers</h2>
          <ul class="tokens" aria-label="Your offers">
            {mine.map((order) => (
              <Offer key={order.orderId} own={own} order={order}>
                <Unlist own={own} order={order} />
              </Offer>
            ))}
          </ul>
        </>
      )}
      {own.markets.map((market) => (
        <section key={market.applicationId} aria-label={market.name}>
          <h2>
            <bdi>{market.name}</bdi>
          </h2>
          <Offers own={own} market={market} onBuy={buy} />
        </section>
      ))}
      {(deal !== null || own.busy || own.notices.length > 0) && (
        <section class="sheet" aria-label="What you buy">
          {deal && (
            <acts.Question onSign={() => sign(deal)} onCancel={() => setDeal(null)}>
              <DealText deal={deal} />
            </acts.Question>
          )}
          <Notices own={own} />
        </section>
      )}
    </>
  );
}

/** The vault that pays an order; throws what the owner can do when none does alone. */
function payingVault({ holdings, standingOf }: Own, { want }: OwnersOrder) {
  const path = want.tokenId === null ? want.assetId : `${want.assetId}/${want.tokenId}`;
  const { held = [] } = holdings.find((each) => each.path === path) ?? {};
  const ready = held.filter((vault) => standingOf(vault).kind === "ready");
  const units = BigInt(want.amount);
  const found = vaultWith(ready, units);
  if (found !== undefined) return found;
  throw new Error(
    leftOf(ready) < units
      ? `You have less than ${itemText(want)} that you can use now.`
      : `You have ${itemText(want)} in several vaults, and one must pay. Merge them on the token's page first.`,
  );
}

interface OffersProps {
  own: Own;
  market: Market;
  onBuy: (order: OwnersOrder) => unknown;
}

function Offers(props: OffersProps) {
  const { own, market } = props;
  const first = useLoad(() => readOffers(own.signedIn, market, null), market, CALM_MS);
  return (
    <Shown of={first}>
      {({ offers, next }) =>
        offers.length === 0 ? (
          <p class="quiet">Nobody offers anything now. Offer a token of yours on its page.</p>
        ) : (
          <OfferList {...props} offers={offers} next={next} />
        )
      }
    </Shown>
  );
}

interface OfferListProps extends OffersProps {
  offers: readonly OwnersOrder[];
  next: string | null;
}

function OfferList({ own, market, onBuy, offers, next }: OfferListProps) {
  const more = async (cursor: string) => {
    const page = await readOffers(own.signedIn, market, cursor);
    return <OfferList own={own} market={market} onBuy={onBuy} {...page} />;
  };
  const { address } = own.signedIn;
  return (
    <>
      <ul class="tokens" aria-label={`For sale at ${market.name}`}>
        {offers.map((order) => (
          <Offer key={order.orderId} own={own} order={order}>
            {order.maker === address.toLowerCase() ? (
              <p class="quiet">Yours</p>
            ) : (
              <Button
                disabled={own.busy}
                onClick={() => onBuy(order)}
                text={`Buy for ${itemText(order.want)}`}
              />
            )}
          </Offer>
        ))}
      </ul>
      {next !== null && <OnDemand text="Show more" load={() => more(next)} />}
    </>
  );
}

interface OfferProps {
  own: Own;
  order: OwnersOrder;
  children: ComponentChildren;
}

function Offer({ own, order, children }: OfferProps) {
  const { give, want, vaultId, deadline, status, failure } = order;
  const { assetId, tokenId } = give;
  const metadata = useMetadata({
    vaultId: BigInt(vaultId),
    chainId: 0n,
    assetType: assetId as `0x${string}`,
    mintingBlob: tokenId === null ? "0x" : "0x00",
  });
  const label = itemText(give);
  const name = tokenId === null ? null : textIn(metadata, "name");
  const title = name === null || name === give.name ? label : name;
  const seed = tokenId === null ? assetId : `${assetId}/${tokenId}`;
  return (
    <li class="token">
      <Picture source={textIn(metadata, "image")} name="" asked={own.asked} seed={seed} />
      <div>
        <h3>
          <bdi>{title}</bdi>
        </h3>
        {title !== label && <p class="quiet">{label}</p>}
        <p class="amount">{itemText(want)}</p>
        <p class="standing">
          {status === "filled"
            ? "Somebody takes it. L1 is to settle it."
            : `Until ${dayOf(deadline)}.`}
        </p>
        {failure !== null && <Notice>{failure}</Notice>}
        {children}
      </div>
    </li>
  );
}

/** Takes an offer off the page, with true words on what that means. */
export function Unlist({ own, order, main }: { own: Own; order: OwnersOrder; main?: boolean }) {
  if (order.status !== "open") return null;
  const ask = `Nobody sees the offer any more. But whoever has its signature, such as the operator, can still settle it at this price until ${dayOf(order.deadline)}. Take it back?`;
  return (
    <Action
      main={main}
      text="Take the offer back"
      ask={ask}
      work={async () => {
        await cancelOrder(own.signedIn, order);
        own.refresh();
      }}
    />
  );
}
