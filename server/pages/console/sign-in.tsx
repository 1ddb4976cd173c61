import { useState } from "preact/hooks";
import type { NewPersonSignIn, Person } from "../../client/index.ts";
import { type Provider, signChallenge, WalletButtons, wallets } from "../shared/wallets.tsx";
import { call } from "./api.ts";
import { Button, Failure, Title, useAction } from "./parts.tsx";

/** The secret of an invitation's link; null without one. It leaves the address at once, so that no history keeps it. */
export function takeLink(): string | null {
  const link = /^#link=([0-9a-f]{96})$/.exec(location.hash)?.[1] ?? null;
  if (link !== null) history.replaceState(null, "", `${location.pathname}#/`);
  return link;
}

interface Several {
  readonly opened: NewPersonSignIn;
  readonly wallet: Provider;
}

/** @param link - waits for a click: programs that look into mails open links too, and each works once */
export function SignIn({ link, onSignedIn }: { link: string | null; onSignedIn: (signIn: NewPersonSignIn) => void }) {
  const { busy, error, run } = useAction();
  const [several, setSeveral] = useState<Several | null>(null);
  const [isSpent, setSpent] = useState(false);
  const open = (proof: object) => call<NewPersonSignIn>("POST", "/console/v1/sign-in", proof);
  const spend = (error: { readonly code?: string }) => {
    setSpent(/^credentials_/.test(error.code ?? ""));
    throw error;
  };
  const byLink = async () => onSignedIn(await open({ link }).catch(spend));
  const byWallet = (wallet: Provider) =>
    run(async () => {
      const opened = await open(await signChallenge(wallet, "console"));
      if (opened.others.length === 0) onSignedIn(opened);
      else setSeveral({ opened, wallet });
    });
  const chosen = ({ opened, wallet }: Several, { applicationId }: Person) =>
    run(async () => {
      if (applicationId === opened.person.applicationId) onSignedIn(opened);
      else onSignedIn(await open({ ...(await signChallenge(wallet, "console")), applicationId }));
    });
  if (several !== null) {
    return (
      <main id="main" tabIndex={-1}>
        <Title lead="This wallet belongs to several teams. Another team than the first asks for one more signature.">
          Choose a team
        </Title>
        {error && <Failure error={error} />}
        {[several.opened.person, ...several.opened.others].map((person) => (
          <p key={person.personId}>
            <button type="button" disabled={busy} onClick={() => void chosen(several, person)}>
              <bdi>{person.applicationName ?? "The operator"}</bdi>, as <bdi>{person.name}</bdi> ({person.role})
            </button>
          </p>
        ))}
      </main>
    );
  }

  return (
    <main id="main" tabIndex={-1}>
      <Title lead="For the team of an application, and for the operator. An admin or the operator invites you.">
        Sign in to the console
      </Title>
      {error && <Failure error={error} />}
      {link !== null && !isSpent && (
        <p>
          <Button main disabled={busy} onClick={() => void run(byLink)} text="Sign in with this link" />
        </p>
      )}
      <WalletButtons main verb="Sign in with" disabled={busy} onChoose={({ provider }) => byWallet(provider)} />
      <p class="quiet">
        {wallets().length === 0 && "This browser has no wallet. "}
        Open your invitation's link to sign in without a wallet: each link works once. In the console you can then set
        the wallet that signs you in from now on.
      </p>
    </main>
  );
}
