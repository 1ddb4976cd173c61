import { type ComponentChildren, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { MemberSession } from "../../client/index.ts";
import { call, readSession, whenSignedOut } from "./api.ts";
import { Keys } from "./keys.tsx";
import { Failure, Title } from "./parts.tsx";
import { SignIn } from "./sign-in.tsx";
import { Audit, Team } from "./team.tsx";

/** What every page is given. */
interface Context {
  readonly session: MemberSession;
  /** null: a member of the operator who looks at no application. */
  readonly application: string | null;
}

/** A page: its address after `#/`, its name, and its content. */
type Entry = readonly [path: string, name: string, page: (context: Context) => ComponentChildren];

const OF_APPLICATION: readonly Entry[] = [["keys", "API keys", ({ session }) => <Keys session={session} />]];
const OF_ALL: readonly Entry[] = [
  ["team", "Team", (context) => <Team {...context} />],
  ["audit", "Audit log", () => <Audit />],
];

function pagesOf({ application }: Context): readonly Entry[] {
  return application === null ? OF_ALL : [...OF_APPLICATION, ...OF_ALL];
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
  const path = useHash();
  const start = () => {
    setError(null);
    if (location.hash.startsWith("#link=")) setSession(null);
    else
      readSession().then(setSession, (failure) =>
        "code" in failure && isSignedOut(failure.code) ? setSession(null) : setError(failure),
      );
  };
  useEffect(() => {
    whenSignedOut(() => setSession(null));
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
  if (session === null) return <SignIn onSignedIn={setSession} />;
  return <Console session={session} path={path} onSignedOut={() => setSession(null)} />;
}

function isSignedOut(code: string): boolean {
  return code.startsWith("credentials_") || code === "application_suspended";
}

function Console({ session, path, onSignedOut }: { session: MemberSession; path: string; onSignedOut: () => void }) {
  const context: Context = { session, application: session.member.applicationId };
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
