import { useRef, useState } from "preact/hooks";
import { Button, Failure, Notice, Shown, useAction, useHash, useLoad } from "../shared/parts.tsx";
import { Problem } from "../shared/request.ts";
import { useWallets, WalletButtons } from "../shared/wallets.tsx";
import { type OwnSignIn, resumeSignIn, signIn, signOut } from "./api.ts";
import { OwnPages } from "./own.tsx";
import { stored } from "./source.tsx";

/** When the sign-in ends, if a visit has left one. The sign-in itself is a cookie. */
const REMEMBERED = "mintmark.owner";

let signedIn: OwnSignIn | null = null;

const isOver = (error: unknown) =>
  error instanceof Problem && error.code.startsWith("credentials_");

export function Owner() {
  const [{ own, hasEnded }, set] = useState({ own: signedIn, hasEnded: false });
  const change = (next: OwnSignIn | null, hasEnded = false) => {
    signedIn = next;
    stored((storage) =>
      next === null ? storage.removeItem(REMEMBERED) : storage.setItem(REMEMBERED, next.expiresAt),
    );
    set({ own: next, hasEnded });
  };
  const end = () => change(null, true);
  const resumed = useLoad(async () => {
    const until = stored((storage) => storage.getItem(REMEMBERED));
    if (signedIn !== null || until === null || Date.parse(until) <= Date.now()) return true;
    await resumeSignIn().then(change, (error: unknown) => {
      if (!isOver(error)) throw error;
      end();
    });
    return true;
  }, null);
  const isFront = /^\/owner\/?$/.test(useHash());
  const leave = useAction();
  const current = own !== null && Date.parse(own.expiresAt) > Date.now() ? own : null;
  return (
    <>
      {(isFront || current === null) && <h1>My tokens</h1>}
      {hasEnded && <Notice problem>Your sign-in has ended. Sign in again.</Notice>}
      <Shown of={resumed}>
        {() =>
          current === null ? (
            <Welcome onSignedIn={change} />
          ) : (
            <>
              <OwnPages key={current.address} signedIn={{ ...current, end }} />
              <p class="who">
                Signed in as <code>{current.address}</code>{" "}
                <Button
                  disabled={leave.busy}
                  onClick={() =>
                    leave.run(async () => {
                      await signOut().catch((error: unknown) => {
                        if (!isOver(error)) throw error;
                      });
                      change(null);
                    })
                  }
                  text="Sign out"
                />
              </p>
              {leave.error && <Failure error={leave.error} />}
            </>
          )
        }
      </Shown>
    </>
  );
}

function Welcome({ onSignedIn }: { onSignedIn: (signedIn: OwnSignIn) => void }) {
  const found = useWallets();
  const last = useRef(found[0]);
  const { error, run } = useAction();
  if (found.length === 0)
    return (
      <Notice>
        This browser has no wallet. Open this page in a browser with your Ethereum wallet.
      </Notice>
    );
  const start = (wallet = last.current) => {
    last.current = wallet;
    if (wallet !== undefined) void run(async () => onSignedIn(await signIn(wallet)));
  };
  return (
    <>
      <p class="lead">See the tokens that are yours, give them away, or take them to L1.</p>
      <p>
        Your wallet signs a short text that names this site. It sends no transaction and costs
        nothing.
      </p>
      <WalletButtons main verb="Sign in with" onChoose={start} />
      {error && <Failure error={error} retry={() => start()} />}
    </>
  );
}
