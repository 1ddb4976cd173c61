import { useEffect } from "preact/hooks";
import type { MemberSession } from "../../client/index.ts";
import { call, signChallenge, wallets } from "./api.ts";
import { Failure, Title, useAction } from "./parts.tsx";

/** The secret of an invitation's link. Taken out of the address at once, so that no history keeps it. */
function takeLink(): string | null {
  const link = /^#link=([0-9a-f]{96})$/.exec(location.hash)?.[1] ?? null;
  if (link !== null) history.replaceState(null, "", `${location.pathname}#/`);
  return link;
}

export function SignIn({ onSignedIn }: { onSignedIn: (session: MemberSession) => void }) {
  const { busy, error, run } = useAction();
  const signIn = (proof: () => Promise<object>) =>
    run(async () => onSignedIn(await call<MemberSession>("POST", "/console/v1/session", await proof())));
  useEffect(() => {
    const link = takeLink();
    if (link !== null) void signIn(async () => ({ link }));
  }, []);
  const found = [...wallets()];
  return (
    <main id="main">
      <Title lead="For the team of an application, and for the operator. You are invited by an admin or by the operator.">
        Sign in to the console
      </Title>
      {error && <Failure error={error} />}
      {found.map(([name, wallet]) => (
        <p key={name}>
          <button class="main" type="button" disabled={busy} onClick={() => void signIn(() => signChallenge(wallet))}>
            Sign in with {name}
          </button>
        </p>
      ))}
      <p class="quiet">
        {found.length === 0 && "This browser has no wallet. "}
        Open your invitation's link to sign in without a wallet: each link works once. In the console you can then set
        the wallet that signs you in from now on.
      </p>
    </main>
  );
}
