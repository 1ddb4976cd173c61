import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Application, PersonSignIn } from "../../client/index.ts";
import type { Problem } from "../shared/request.ts";
import { call, caller } from "./api.ts";
import { Assets, Drops, Mint, Overview, Users } from "./day.tsx";
import { Applications, Operating } from "./operator.tsx";
import { Button, Failure, Search, show, Title, Top, useHash, useLoad } from "./parts.tsx";
import { Audit, SignIn, Team, takeLink } from "./people.tsx";
import { Keys, Webhooks } from "./programs.tsx";
import { AssetPage, BatchPage, Find, UserPage, VaultStory, Vaults } from "./things.tsx";
import { forgetAssets } from "./tokens.tsx";
import { TransactionPage, Transactions, TransferPage, Transfers } from "./transactions.tsx";

interface Context {
  readonly signIn: PersonSignIn;
  /** null: a person of the operator who looks at no application. */
  readonly application: string | null;
  /**
   * The parts of the address behind the page, which name what is shown; empty for all of its kind.
   */
  readonly id: string;
  readonly tokenId: string | undefined;
  choose(application: Application | null): void;
}

type Page = (context: Context) => ComponentChildren;
/**
 * A page: its address after `#/`, its title, and its content. Then the content and the title for
 * one id; in that title `*` stands for the id. Content without a title shows its own. The menu
 * lacks a page without the first title.
 */
type Entry = readonly [path: string, title: string, all: Page, one?: Page, titleOfOne?: string];

const OF_APPLICATION: readonly [Entry, ...Entry[]] = [
  ["overview", "Overview", Overview],
  ["keys", "API keys", Keys],
  ["assets", "Assets", Assets, AssetPage],
  ["users", "Users", Users, UserPage],
  ["mint", "Mint by hand", Mint],
  ["drops", "Drops", Drops],
  ["transactions", "Transactions", () => <Transactions />, TransactionPage, "Transaction"],
  ["vaults", "Vaults", Vaults, VaultStory, "Vault *"],
  ["transfers", "Transfers", Transfers, TransferPage, "Transfer"],
  ["withdrawals", "Withdrawals", () => <Transactions type="withdrawal" />],
  ["webhooks", "Webhooks", Webhooks],
  ["batches", "", BatchPage],
  ["find", "", Find],
];
const OF_OPERATOR: readonly [Entry, ...Entry[]] = [
  ["operations", "Operations", Operating],
  ["applications", "Applications", Applications],
];
const OF_ALL: readonly Entry[] = [
  ["team", "Team", Team],
  ["audit", "Audit log", Audit],
];
/** Pages that only those see who have the right of the same name. */
const RIGHTS: readonly string[] = ["mint", "webhooks"];

/** A paragraph under each title. */
const LEADS: Readonly<Record<string, string>> = {
  keys: "Programs mint with a key. To rotate: create a key, switch your programs to it, then revoke the old one.",
  assets: "Token contracts that your application can enable. It mints those that are enabled.",
  users:
    "A user is an address on L1 that owns what you mint for it. Your own name for it is its reference.",
  mint: "One token, or an amount of one, for an owner. A mint cannot be undone.",
  drops:
    "Mint the rows of a CSV or NDJSON file, up to a million. A row has ownerAddress and tokenId, or amount in whole tokens.",
  transfers:
    "An owner signs who gets its vaults, or redeems them. A redeemed vault, such as a used ticket, is gone for ever. A failed transfer moves nothing.",
  withdrawals:
    "An owner signs a withdrawal with its wallet, in your application or in the explorer.",
  webhooks: "Events are posted to these addresses, in order, signed, until they are taken.",
  operations: "From the open batches to L1: what runs, what waits, and what it costs.",
  applications: "Look into an application to invite its first person.",
  team: "Each person has a role. The engine checks it before each change, and logs who made it.",
  audit: "Who did what, newest first. The journal holds each entry together with its change.",
};

function App() {
  const [signIn, setSignIn] = useState<PersonSignIn | null>(null);
  const [link, setLink] = useState(takeLink);
  const path = useHash().replace(/^\//, "");
  const started = useLoad(async () => {
    if (link === null)
      setSignIn(await call<PersonSignIn>("GET", "/console/v1/sign-in").catch(nobodyIfSignedOut));
    return true;
  }, null);
  useEffect(() => {
    caller.onSignedOut = () => setSignIn(null);
    // A link that is opened in a tab with the console changes the address only.
    addEventListener("hashchange", () => setLink((earlier) => takeLink() ?? earlier));
  }, []);
  if (started.error !== null) {
    return (
      <main>
        <Title>The console cannot start now</Title>
        <Failure error={started.error} retry={started.reload} />
      </main>
    );
  }
  if (started.value === undefined) return <p class="quiet">Loading…</p>;
  if (signIn === null || link !== null) {
    const signedIn = (opened: PersonSignIn) => {
      setLink(null);
      setSignIn(opened);
    };
    return <SignIn key={link} link={link} onSignedIn={signedIn} />;
  }
  return <Console signIn={signIn} path={path} onSignedOut={() => setSignIn(null)} />;
}

function nobodyIfSignedOut(failure: Problem): null {
  if (failure.code.startsWith("credentials_") || failure.code === "application_suspended")
    return null;
  throw failure;
}

function Console({
  signIn,
  path,
  onSignedOut,
}: {
  signIn: PersonSignIn;
  path: string;
  onSignedOut: () => void;
}) {
  const [looked, setLooked] = useState<Application | null>(null);
  const choose = (application: Application | null) => {
    forgetAssets();
    caller.application = application?.applicationId ?? null;
    setLooked(application);
    location.hash = application === null ? "#/applications" : "#/overview";
  };
  const application = signIn.person.applicationId ?? looked?.applicationId ?? null;
  const [asked = "", id = "", tokenId] = (path.split("?")[0] ?? "")
    .split("/")
    .map(decodeURIComponent);
  const own = application === null ? OF_OPERATOR : OF_APPLICATION;
  const rights: readonly string[] = signIn.rights;
  const pages = [...own, ...OF_ALL].filter(
    ([each]) => !RIGHTS.includes(each) || rights.includes(each),
  );
  const [at, titleOfAll, All, One, titleOfOne = ""] =
    pages.find(([each]) => asked === each) ?? own[0];
  const [Page, title, lead] =
    id && One ? [One, titleOfOne.replace("*", () => id)] : [All, titleOfAll, LEADS[at]];
  const signOut = () => void call("DELETE", "/console/v1/sign-in").then(onSignedOut, onSignedOut);
  return (
    <>
      <Top>
        <span class="badge">console</span>
        {signIn.person.applicationName !== null && <strong>{signIn.person.applicationName}</strong>}
        {looked !== null && (
          <span class="who">
            <strong>{looked.name}</strong>
            <Button onClick={() => choose(null)} text="Back to all" />
          </span>
        )}
        {application !== null && (
          <Search
            hashOf={(q) => `#/find?${new URLSearchParams({ q })}`}
            label="Find anything"
            placeholder="Token, vault, user, address, reference…"
          />
        )}
        <span class="who">
          <span>
            {signIn.person.name} <span class="quiet">({signIn.person.role})</span>
          </span>
          <Button onClick={signOut} text="Sign out" />
        </span>
      </Top>
      <div class="shell">
        <nav aria-label="Pages">
          {pages
            .filter(([, name]) => name !== "")
            .map(([each, name]) => (
              <a key={each} href={`#/${each}`} {...(each === at && { "aria-current": "page" })}>
                {name}
              </a>
            ))}
        </nav>
        <main id="main" tabIndex={-1} key={`${at} ${id}/${tokenId} ${application}`}>
          {title !== "" && <Title lead={lead}>{title}</Title>}
          <Page {...{ signIn, application, id, tokenId, choose }} />
        </main>
      </div>
    </>
  );
}

show(<App />);
