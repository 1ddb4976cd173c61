import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { sentenceOf } from "../shared/format.ts";
import { Failure, Titled, useHash, useLoad } from "../shared/parts.tsx";
import {
  type OwnVault,
  readMarketAssets,
  readMarkets,
  readOwnOrders,
  type SignedIn,
} from "./api.ts";
import { MarketPage } from "./market.tsx";
import type { Own, OwnMarket } from "./own-state.ts";
import { Overview } from "./own-tokens.tsx";
import {
  CALM_MS,
  holdingsOf,
  isGone,
  type ShownStanding,
  standingAt,
  useOwnVaults,
} from "./own-vaults.tsx";
import { type Act, followGiven } from "./owner-acts.tsx";
import { BackPage } from "./return.tsx";
import { settings } from "./source.tsx";
import { TokenPage } from "./token-page.tsx";

async function readOwnMarkets(signedIn: SignedIn): Promise<readonly OwnMarket[]> {
  const markets = await readMarkets(signedIn);
  return Promise.all(
    markets.map(async (market) => ({
      ...market,
      assets: await readMarketAssets(signedIn, market),
    })),
  );
}

export function OwnPages({ signedIn }: { signedIn: SignedIn }) {
  const path = useHash().replace(/^\/owner\/?/, "");
  const own = useOwnVaults(signedIn);
  const ordered = useLoad(() => readOwnOrders(signedIn), null, CALM_MS);
  const orders = ordered.value ?? [];
  const markets = useLoad(() => readOwnMarkets(signedIn), null).value ?? [];
  const [busy, setBusy] = useState(false);
  const [asked, setAsked] = useState(false);
  const [notices, say] = useState<readonly string[]>([]);
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const { told, given } = useRef({
    /** Standings that acts have told, and when the server last knew something new of each token. */
    told: new Map<bigint, ShownStanding & { readonly since: string }>(),
    given: new Map() as Act["given"],
  }).current;
  const vaults = own.value?.vaults ?? [];
  const act: Act = {
    signedIn,
    given,
    change(vaultId, text, kind) {
      const since = vaults.find((each) => each.vaultId === vaultId)?.updatedAt ?? "";
      told.set(vaultId, { text, kind, since });
      redraw(null);
    },
  };
  useEffect(() => void followGiven(act, vaults).catch(() => undefined), [own.value]);
  useEffect(() => say([]), [path]);

  /** The word of an act counts until the server knows more. */
  function standingOf(vault: OwnVault): ShownStanding {
    const said = told.get(vault.vaultId);
    const isKnown = isGone(vault) || (said?.kind !== "spent" && said?.since !== vault.updatedAt);
    if (said !== undefined && !isKnown) return said;
    const order = orders.find(({ vaultId }) => vaultId === String(vault.vaultId));
    return standingAt(vault, settings.relayVaults > 0, order);
  }

  const refresh = () => void ordered.reload();

  async function run(work: (act: Act) => Promise<readonly string[]>): Promise<boolean> {
    setBusy(true);
    say([]);
    const refused = await work(act).catch((error: unknown) => [sentenceOf(error)]);
    say(refused);
    setBusy(false);
    refresh();
    return refused.length === 0;
  }

  const retry = () => void own.reload();
  if (own.value === undefined)
    return own.error === null ? <Ghosts /> : <Failure error={own.error} retry={retry} drawn />;
  const pages: Own = {
    ...{ signedIn, orders, markets, asked, busy, notices, standingOf, run, refresh, say },
    holdings: holdingsOf(vaults),
    isWhole: own.value.isWhole,
    onAsked: () => setAsked(true),
  };
  return (
    <Titled>
      {own.error !== null && <Failure error={own.error} retry={retry} />}
      <OwnPage own={pages} path={path} />
    </Titled>
  );
}

function OwnPage({ own, path }: { own: Own; path: string }) {
  const parts: readonly (readonly [path: string, name: string])[] = [
    ["", "All"],
    ...(own.markets.length > 0 ? ([["market", "For sale"]] as const) : []),
    ["back", "Bring back"],
  ];
  const part = parts.find(([each]) => each === path);
  if (part === undefined) return <TokenPage key={path} own={own} path={path} />;
  return (
    <>
      {path !== "" && <h1>{part[1]}</h1>}
      <nav aria-label="My tokens">
        {parts.map(([each, name]) => (
          <a
            key={each}
            href={`#/owner${each && `/${each}`}`}
            {...(each === path && { "aria-current": "page" as const })}
          >
            {name}
          </a>
        ))}
      </nav>
      {path === "" && <Overview own={own} />}
      {path === "market" && <MarketPage own={own} />}
      {path === "back" && <BackPage own={own} />}
    </>
  );
}

/** Where tokens will be, while they are looked for. */
function Ghosts() {
  return (
    <>
      <p class="quiet" role="status">
        Looking for your tokens…
      </p>
      <ul class="tokens" aria-hidden="true">
        {[0, 1, 2].map((place) => (
          <li key={place} class="token ghost">
            <span class="picture none" />
            <div>
              <span />
              <span />
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
