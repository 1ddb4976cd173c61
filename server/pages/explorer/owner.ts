import { bytesToHex, type Hex, type VaultContent } from "../../../core/protocol/verifier.ts";
import { Problem, readBatches, request } from "./api.ts";
import { vaultsOf } from "./batch.ts";
import { button, code, el, failure, fill, notice } from "./dom.ts";
import { counted } from "./format.ts";
import { wallet } from "./l1.ts";
import { vaultTable } from "./vaults.ts";

interface Session {
  readonly token: string;
  readonly address: Hex;
  readonly expiresAt: string;
}

/** A session, and its end at the server, which shows the sign-in again. */
interface SignedIn extends Session {
  end(): void;
}

/** In memory only: it ends with the page. */
let session: Session | null = null;

/** The signed-in owner's vaults and their exit kits. */
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
      "An exit kit is a small file with everything needed to withdraw a vault on L1, without the operator. Keep it like a receipt. It moves nothing without your key.",
    ),
    place,
  ];
}

function signedIn(): boolean {
  return session !== null && Date.parse(session.expiresAt) > Date.now();
}

function welcome(done: () => void): HTMLElement {
  const answer = el("div", {});
  if (wallet() === null) {
    return notice("This browser has no wallet. Open this page in a browser with your Ethereum wallet.");
  }
  const start = button("Sign in with Ethereum", () =>
    fill(answer, async () => {
      session = await signIn();
      done();
      return [];
    }),
  );
  return el(
    "div",
    {},
    el("p", {}, "Your wallet signs a short text that names this site. It sends no transaction and costs nothing."),
    start,
    answer,
  );
}

/** EIP-4361: the server writes the text, the wallet signs it, and the server returns a session for the address. */
async function signIn(): Promise<Session> {
  const provider = wallet();
  const accounts = (await provider?.request({ method: "eth_requestAccounts" })) as readonly Hex[] | undefined;
  const address = accounts?.[0];
  if (!provider || address === undefined) throw new Error("The wallet shows no account.");
  const { message } = await post<{ message: string }>("/owner/v1/challenge", { address });
  if (!message.startsWith(`${location.host} wants you to sign in`)) {
    throw new Error("The text to sign names another site. Do not sign it.");
  }
  const text = bytesToHex(new TextEncoder().encode(message));
  const signature = await provider.request({ method: "personal_sign", params: [text, address] });
  return post("/owner/v1/session", { message, signature });
}

async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

function ownersPage(current: Session, changed: () => void, end: () => void): Node[] {
  const found = el("div", { class: "found" });
  const leave = button("Sign out", () => {
    session = null;
    changed();
  });
  void search({ ...current, end }, found, null, 0, 0);
  return [el("p", { class: "who" }, "Signed in as ", code(current.address), " ", leave), found];
}

/**
 * Searches the public data of one page of batches, and offers to continue. Nobody learns which vaults it searches for.
 */
async function search(
  current: SignedIn,
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
    const pages = await Promise.all(sealed.map(vaultsOf));
    const own = pages.flat().filter(({ owner }) => owner === current.address);
    const total = matches + own.length;
    if (own.length > 0)
      progress.before(vaultTable(own, { name: "Exit kit", cell: (vault) => download(vault, current) }));
    const summary = `${counted(total, "vault")} of yours in ${counted(seen + sealed.length, "sealed batch", "sealed batches")}.`;
    const older = () => search(current, place, next, seen + sealed.length, total);
    progress.replaceChildren(summary, " ", ...(next === null ? [] : [button("Search older batches", older)]));
  } catch (error) {
    const again = () => {
      failed.remove();
      return search(current, place, cursor, seen, matches);
    };
    const failed = failure(error, again);
    progress.replaceWith(failed);
  }
}

function download({ vaultId }: VaultContent, { token, end }: SignedIn): HTMLElement {
  const place = el("span", {});
  const name = `exit-kit-${vaultId}.json`;
  const save = () =>
    fill(place, async () => {
      const headers = { authorization: `Bearer ${token}` };
      const response = await request(`/owner/v1/vaults/${vaultId}/exit-kit`, { headers }).catch((error: unknown) => {
        if (error instanceof Problem && error.code.startsWith("credentials_")) end();
        throw error;
      });
      const address = URL.createObjectURL(await response.blob());
      el("a", { href: address, download: name }).click();
      URL.revokeObjectURL(address);
      return [start, el("span", { role: "status", class: "quiet" }, " saved")];
    });
  const start = button("Download", save);
  start.setAttribute("aria-label", `Download the exit kit of vault ${vaultId}`);
  place.append(start);
  return place;
}
