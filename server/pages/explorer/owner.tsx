import { useEffect, useRef, useState } from "preact/hooks";
import type { VaultContent } from "../../../core/protocol/verifier.ts";
import { counted } from "../shared/format.ts";
import { Button, Failure, Notice, useAction } from "../shared/parts.tsx";
import { useWallets, WalletButtons } from "../shared/wallets.tsx";
import { type OwnSignIn, readBatches, type SignedIn, signIn } from "./api.ts";
import { vaultsOf } from "./batches.tsx";
import { OwnTokens } from "./own-tokens.tsx";
import { ownTransfers } from "./transfer-view.tsx";

let signedIn: OwnSignIn | null = null;

export function Owner() {
  const [{ own, hasEnded }, set] = useState({ own: signedIn, hasEnded: false });
  const change = (next: OwnSignIn | null, hasEnded = false) => {
    signedIn = next;
    set({ own: next, hasEnded });
  };
  const current = own !== null && Date.parse(own.expiresAt) > Date.now() ? own : null;
  return (
    <>
      <h1>My tokens</h1>
      <p class="lead">
        Take your tokens to L1 here. An exit kit is a small file that does the same without this
        server: <a href="/exit">the exit page</a> needs only the file and your wallet. Keep it like
        a receipt.
      </p>
      {hasEnded && <Notice problem>Your sign-in has ended. Sign in again.</Notice>}
      {current === null ? (
        <Welcome onSignedIn={change} />
      ) : (
        <>
          <p class="who">
            Signed in as <code>{current.address}</code>{" "}
            <Button onClick={() => change(null)} text="Sign out" />
          </p>
          <Found key={current.token} signedIn={{ ...current, end: () => change(null, true) }} />
        </>
      )}
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
      <p>
        Your wallet signs a short text that names this site. It sends no transaction and costs
        nothing.
      </p>
      <WalletButtons main verb="Sign in with" onChoose={start} />
      {error && <Failure error={error} retry={() => start()} />}
    </>
  );
}

/**
 * Searches the public data, a page of batches at a time. Nobody learns which vaults it searches
 * for.
 */
function Found({ signedIn }: { signedIn: SignedIn }) {
  const transfers = useRef(ownTransfers(signedIn.address)).current;
  const [{ vaults, batches, next }, setFound] = useState({
    vaults: [] as readonly VaultContent[],
    batches: 0,
    next: null as string | null,
  });
  const { busy, error, run } = useAction();
  const search = () =>
    run(async () => {
      const page = await readBatches(next);
      const sealed = page.data.filter(({ batchRoot }) => batchRoot !== null);
      const mine: VaultContent[] = [];
      for (const batch of sealed)
        if (batch.kind === "transfers") mine.push(...(await transfers.read(batch)));
      const minted = await Promise.all(
        sealed.filter(({ kind }) => kind !== "transfers").map(vaultsOf),
      );
      mine.push(...minted.flat().filter(({ owner }) => owner === signedIn.address));
      mine.push(...(await transfers.changesOf(mine)));
      setFound({ vaults: [...vaults, ...mine], batches: batches + sealed.length, next: page.next });
    });
  useEffect(() => void search(), []);
  return (
    <>
      {vaults.length > 0 && <OwnTokens signedIn={signedIn} transfers={transfers} vaults={vaults} />}
      {error ? (
        <Failure error={error} retry={search} />
      ) : (
        <p class="quiet" role="status">
          {busy
            ? "Searching the public batch data…"
            : `${counted(vaults.length, "token")} of yours in ${counted(batches, "sealed batch", "sealed batches")}. `}
          {!busy && next !== null && <Button onClick={search} text="Search older batches" />}
        </p>
      )}
    </>
  );
}
