import { type ComponentChildren, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Application, MemberSession } from "../../client/index.ts";
import { call, chooseApplication, readSession, whenSignedOut } from "./api.ts";
import { Assets, Mint, Overview, Transactions, Users, Vaults, Withdrawals } from "./day.tsx";
import { Drops } from "./drops.tsx";
import { Keys } from "./keys.tsx";
import { Applications, Operating } from "./operator.tsx";
import { Failure, Title } from "./parts.tsx";
import { SignIn, takeLink } from "./sign-in.tsx";
import { Audit, Team } from "./team.tsx";
import { Transfers } from "./transfers-page.tsx";
import { Webhooks } from "./webhooks.tsx";

/** What every page is given. */
interface Context {
  readonly session: MemberSession;
  /** null: a member of the operator who looks at no application. */
  readonly application: string | null;
  choose(application: Application | null): void;
}

/** A page: its address after `#/`, its name, and its content. */
type Entry = readonly [path: string, name: string, page: (context: Context) => ComponentChildren, right?: Right];
type Right = MemberSession["rights"][number];

const OF_APPLICATION: readonly Entry[] = [
  ["overview", "Overview", () => <Overview />],
  ["keys", "API keys", ({ session }) => <Keys session={session} />],
  ["assets", "Assets", ({ session }) => <Assets session={session} />],
  ["users", "Users", ({ session }) => <Users session={session} />],
  ["mint", "Mint by hand", () => <Mint />, "mint"],
  ["drops", "Drops", ({ session }) => <Drops session={session} />],
  ["transactions", "Transactions", () => <Transactions />],
  ["vaults", "Vaults", () => <Vaults />],
  ["transfers", "Transfers", () => <Transfers />],
  ["withdrawals", "Withdrawals", () => <Withdrawals />],
  ["webhooks", "Webhooks", () => <Webhooks />, "webhooks"],
];
const OF_OPERATOR: readonly Entry[] = [
  ["operations", "Operations", () => <Operating />],
  ["applications", "Applications", ({ choose }) => <Applications onChoose={choose} />],
];
const OF_ALL: readonly Entry[] = [
  ["team", "Team", (context) => <Team {...context} />],
  ["audit", "Audit log", () => <Audit />],
];

function pagesOf({ session, application }: Context): readonly Entry[] {
  const pages = [...(application === null ? OF_OPERATOR : OF_APPLICATION), ...OF_ALL];
  return pages.filter(([, , , right]) => right === undefined || session.rights.includes(right));
}

function useHash(): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const read = () => setHash(location.hash);
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return hash.replace(/^#\//, "");
}

function App() {
  const [session, setSession] = useState<MemberSession | null | undefined>(undefined);
  const [error, setError] = useState<Error | null>(null);
  const [link, setLink] = useState(takeLink);
  const path = useHash();
  const start = () => {
    setError(null);
    if (link !== null) setSession(null);
    else
      readSession().then(setSession, (failure) =>
        "code" in failure && isSignedOut(failure.code) ? setSession(null) : setError(failure),
      );
  };
  useEffect(() => {
    whenSignedOut(() => setSession(null));
    // A link that is opened in a tab with the console changes the address only.
    addEventListener("hashchange", () => setLink((earlier) => takeLink() ?? earlier));
    start();
  }, []);
  if (error !== null) {
    return (
      <main>
        <Title>The console cannot start now</Title>
        <Failure error={error} retry={start} />
      </main>
    );
  }
  if (session === undefined) return <p class="quiet">Loading…</p>;
  if (session === null || link !== null) {
    const signedIn = (opened: MemberSession) => {
      setLink(null);
      setSession(opened);
    };
    return <SignIn key={link} link={link} onSignedIn={signedIn} />;
  }
  return <Console session={session} path={path} onSignedOut={() => setSession(null)} />;
}

function isSignedOut(code: string): boolean {
  return code.startsWith("credentials_") || code === "application_suspended";
}

function Console({ session, path, onSignedOut }: { session: MemberSession; path: string; onSignedOut: () => void }) {
  const [looked, setLooked] = useState<Application | null>(null);
  const choose = (application: Application | null) => {
    chooseApplication(application?.applicationId ?? null);
    setLooked(application);
    location.hash = application === null ? "#/applications" : "#/overview";
  };
  const application = session.member.applicationId ?? looked?.applicationId ?? null;
  const context: Context = { session, application, choose };
  const pages = pagesOf(context);
  const shown = pages.find(([each]) => path.split("/")[0] === each) ?? pages[0];
  const signOut = () => void call("DELETE", "/console/v1/session").then(onSignedOut, onSignedOut);
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
            <use href="/explorer/icon.svg#mark" />
          </svg>
          <span>Mintmark</span>
        </a>
        <span class="badge">console</span>
        {session.member.applicationName !== null && <strong>{session.member.applicationName}</strong>}
        {looked !== null && (
          <span class="who">
            <strong>{looked.name}</strong>
            <button type="button" onClick={() => choose(null)}>
              Back to all
            </button>
          </span>
        )}
        <span class="who">
          <span>
            {session.member.name} <span class="quiet">({session.member.role})</span>
          </span>
          <button type="button" onClick={signOut}>
            Sign out
          </button>
        </span>
      </header>
      <div class="shell">
        <nav aria-label="Pages">
          {pages.map(([each, name]) => (
            <a key={each} href={`#/${each}`} {...(each === shown?.[0] && { "aria-current": "page" })}>
              {name}
            </a>
          ))}
        </nav>
        <main id="main" tabIndex={-1} key={`${shown?.[0]} ${context.application}`}>
          {shown?.[2](context)}
        </main>
      </div>
    </>
  );
}

const place = document.getElementById("app");
if (place !== null) {
  place.replaceChildren();
  render(<App />, place);
}
