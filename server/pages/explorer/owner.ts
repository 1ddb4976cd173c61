import type { VaultContent } from "../../../core/protocol/verifier.ts";
import { counted } from "../shared/format.ts";
import { onWallet, type Wallet, wallets } from "../shared/wallets.ts";
import { readBatches } from "./api.ts";
import { vaultsOf } from "./batch.ts";
import { button, code, el, failure, fill, notice } from "./dom.ts";
import { ownVaults } from "./own-vaults.ts";
import { type Session, signIn } from "./session.ts";

let session: Session | null = null;
let greeting: HTMLElement | null = null;

// A wallet can announce itself after the page was drawn.
onWallet(() => {
  if (greeting?.isConnected) greeting.dispatchEvent(new Event("wallet"));
});

/** The signed-in owner's vaults: what they hold, their exit kits, and their way to L1. */
export async function ownerView(): Promise<Node[]> {
  const place = el("div", {});
  const show = () =>
    place.replaceChildren(...(signedIn() ? ownersPage(session as Session, show, end) : [welcome(show)]));
  const end = () => {
    session = null;
    place.replaceChildren(notice("Your session has ended. Sign in again.", "problem"), welcome(show));
  };
  show();
  return [
    el("h1", {}, "My vaults"),
    el(
      "p",
      { class: "lead" },
      "Take your tokens to L1 here. An exit kit is a small file that does the same without this server: ",
      el("a", { href: "/exit" }, "the exit page"),
      " needs only the file and your wallet. Keep it like a receipt.",
    ),
    place,
  ];
}

function signedIn(): boolean {
  return session !== null && Date.parse(session.expiresAt) > Date.now();
}

function welcome(done: () => void): HTMLElement {
  const place = el("div", {});
  const draw = () => place.replaceChildren(...offers(done));
  place.addEventListener("wallet", draw);
  greeting = place;
  draw();
  return place;
}

function offers(done: () => void): Node[] {
  const found = wallets();
  if (found.length === 0) {
    return [notice("This browser has no wallet. Open this page in a browser with your Ethereum wallet.")];
  }
  const answer = el("div", {});
  const start = (wallet: Wallet) =>
    button(`Sign in with ${wallet.name}`, () =>
      fill(answer, async () => {
        session = await signIn(wallet);
        done();
        return [];
      }),
    );
  return [
    el("p", {}, "Your wallet signs a short text that names this site. It sends no transaction and costs nothing."),
    el("div", { class: "choices" }, ...found.map(start)),
    answer,
  ];
}

function ownersPage(current: Session, changed: () => void, end: () => void): Node[] {
  const found = el("div", { class: "found" });
  const own = ownVaults({ ...current, end });
  const leave = button("Sign out", () => {
    session = null;
    changed();
  });
  void search(current, own, found, null, 0, 0);
  return [el("p", { class: "who" }, "Signed in as ", code(current.address), " ", leave), own.panel, found];
}

/**
 * Searches the public data of one page of batches, and offers to continue. Nobody learns which vaults it searches for.
 */
async function search(
  current: Session,
  own: ReturnType<typeof ownVaults>,
  place: HTMLElement,
  cursor: string | null,
  seen: number,
  matches: number,
): Promise<void> {
  const progress = el("p", { class: "quiet", role: "status" }, "Searching the public batch data…");
  place.append(progress);
  try {
    const { data, next } = await readBatches(cursor);
    const sealed = data.filter(({ batchRoot }) => batchRoot !== null);
    const received: VaultContent[] = [];
    for (const batch of sealed) if (batch.kind === "transfers") received.push(...(await own.transfers.read(batch)));
    const pages = await Promise.all(sealed.filter(({ kind }) => kind !== "transfers").map(vaultsOf));
    const mine = [...received, ...pages.flat().filter(({ owner }) => owner === current.address)];
    mine.push(...(await own.transfers.changesOf(mine)));
    const total = matches + mine.length;
    if (mine.length > 0) progress.before(own.table(mine));
    const summary = `${counted(total, "vault")} of yours in ${counted(seen + sealed.length, "sealed batch", "sealed batches")}.`;
    const older = () => search(current, own, place, next, seen + sealed.length, total);
    progress.replaceChildren(summary, " ", ...(next === null ? [] : [button("Search older batches", older)]));
  } catch (error) {
    const again = () => {
      failed.remove();
      return search(current, own, place, cursor, seen, matches);
    };
    const failed = failure(error, again);
    progress.replaceWith(failed);
  }
}
