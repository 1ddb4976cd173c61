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
  /** The parts of the address behind the page: ids of what is shown. */
  readonly ids: readonly string[];
  choose(application: Application | null): void;
}

/** A page: its address after `#/`, its name (empty: the menu lacks it), and its content. */
type Entry = readonly [path: string, name: string, Page: (context: Context) => ComponentChildren, right?: Right];
type Right = PersonSignIn["rights"][number];

const OF_APPLICATION: readonly [Entry, ...Entry[]] = [
  ["overview", "Overview", Overview],
  ["keys", "API keys", Keys],
  [
    "assets",
    "Assets",
    ({ signIn, ids: [id, tokenId] }) => (id ? <AssetPage {...{ id, tokenId }} /> : <Assets signIn={signIn} />),
  ],
  ["users", "Users", ({ signIn, ids: [id] }) => (id ? <UserPage id={id} /> : <Users signIn={signIn} />)],
  ["mint", "Mint by hand", Mint, "mint"],
  ["drops", "Drops", Drops],
  ["transactions", "Transactions", ({ ids: [id] }) => (id ? <TransactionPage id={id} /> : <Transactions />)],
  ["vaults", "Vaults", ({ ids: [id] }) => (id ? <VaultStory id={id} /> : <Vaults />)],
  ["transfers", "Transfers", ({ ids: [id] }) => (id ? <TransferPage id={id} /> : <Transfers />)],
  ["withdrawals", "Withdrawals", () => <Transactions title="Withdrawals" type="withdrawal" />],
  ["webhooks", "Webhooks", Webhooks, "webhooks"],
  ["batches", "", ({ ids: [id = ""] }) => <BatchPage id={id} />],
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

function App() {
  const [signIn, setSignIn] = useState<PersonSignIn | null>(null);
  const [link, setLink] = useState(takeLink);
  const path = useHash().replace(/^\//, "");
  const started = useLoad(async () => {
    if (link === null) setSignIn(await call<PersonSignIn>("GET", "/console/v1/sign-in").catch(nobodyIfSignedOut));
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
  if (failure.code.startsWith("credentials_") || failure.code === "application_suspended") return null;
  throw failure;
}

function Console({ signIn, path, onSignedOut }: { signIn: PersonSignIn; path: string; onSignedOut: () => void }) {
  const [looked, setLooked] = useState<Application | null>(null);
  const choose = (application: Application | null) => {
    forgetAssets();
    caller.application = application?.applicationId ?? null;
    setLooked(application);
    location.hash = application === null ? "#/applications" : "#/overview";
  };
  const application = signIn.person.applicationId ?? looked?.applicationId ?? null;
  const [asked = "", ...ids] = (path.split("?")[0] ?? "").split("/").map(decodeURIComponent);
  const own = application === null ? OF_OPERATOR : OF_APPLICATION;
  const pages = [...own, ...OF_ALL].filter(([, , , right]) => right === undefined || signIn.rights.includes(right));
  const [at, , Page] = pages.find(([each]) => asked === each) ?? own[0];
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
            find={(q) => {
              location.hash = `#/find?${new URLSearchParams({ q })}`;
            }}
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
        <main id="main" tabIndex={-1} key={`${at} ${ids.join("/")} ${application}`}>
          <Page {...{ signIn, application, ids, choose }} />
        </main>
      </div>
    </>
  );
}

show(<App />);
