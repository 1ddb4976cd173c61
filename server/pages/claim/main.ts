import { hashTypedData, isAddress } from "viem";
import { privateKeyToAddress, sign } from "viem/accounts";
import { claimTypedData } from "../../../core/protocol/index.ts";
import type { PublicClaimLink, TakenClaimLink } from "../../client/index.ts";
import { button, code, el, facts, link, notice } from "../explorer/dom.ts";
import { sentenceOf } from "../shared/format.ts";
import { accountsOf, type Provider, wallets } from "../shared/wallets.ts";

type Hex = `0x${string}`;
type Content = readonly (Node | string)[];

const main = document.querySelector("main") as HTMLElement;

/** The link's private key. It is in the fragment, which browsers send to no server. */
function keyInFragment(): Hex | null {
  const text = location.hash.slice(1);
  if (!/^[A-Za-z0-9_-]{43}$/.test(text)) return null;
  const bytes = atob(`${text.replaceAll("-", "+").replaceAll("_", "/")}=`);
  return `0x${Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("")}`;
}

function addressOf(key: Hex): Hex | null {
  try {
    return privateKeyToAddress(key);
  } catch {
    return null;
  }
}

/** An answer of this server, or its reason as an error. */
async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  const answer = await fetch(path, init);
  const body = (await answer.json().catch(() => null)) as (T & { readonly detail?: string }) | null;
  if (answer.ok && body !== null) return body;
  throw new Error(body?.detail ?? "The server does not answer as it should. Try again later.");
}

function show(title: string, ...content: Content): void {
  main.replaceChildren(el("h1", {}, title), ...content);
}

async function start(): Promise<void> {
  const key = keyInFragment();
  const address = key === null ? null : addressOf(key);
  if (key === null || address === null) {
    show("This link is incomplete", el("p", {}, "Open it again from where you have it, or scan the code again."));
    return;
  }
  try {
    showClaim(key, await ask<PublicClaimLink>(`/public/v1/claims/${address}`));
  } catch (error) {
    show("This link does not work", notice(sentenceOf(error), "problem"), button("Try again", start));
  }
}

const ENDED: Readonly<Record<string, string>> = {
  claimed: "This link has been used.",
  cancelled: "The issuer has cancelled this link. Ask for another.",
  expired: "This link has expired. Ask its issuer for another.",
};

function showClaim(key: Hex, claim: PublicClaimLink): void {
  const { asset, tokenId, amount, quantity, expiresAt, status, ownerAddress } = claim;
  const what: [string, string][] = [["Token", `${asset.name} (${asset.symbol})`]];
  if (tokenId !== null) what.push(["Id", tokenId]);
  if (amount !== null) what.push(["Amount", amount]);
  if (quantity !== null && quantity > 1) what.push(["Tokens", String(quantity)]);
  if (ownerAddress !== null) what.push(["Owner", ownerAddress]);
  if (expiresAt !== null && status === "open") what.push(["Claim until", new Date(expiresAt).toLocaleString()]);
  const ended = ENDED[status];
  if (ended !== undefined) show("Claim a token", facts(what), notice(ended));
  else show("Claim a token", facts(what), form(key, claim));
}

function form(key: Hex, claim: PublicClaimLink): HTMLElement {
  const input = el("input", { id: "owner", autocomplete: "off", spellcheck: "false" }) as HTMLInputElement;
  input.placeholder = "0x…";
  input.required = true;
  const said = el("div");
  const send = el("button", { type: "submit" }, "Claim") as HTMLButtonElement;
  const choose = async (wallet: Provider): Promise<void> => {
    try {
      const [account] = await accountsOf(wallet);
      if (account !== undefined) input.value = account;
    } catch (error) {
      said.replaceChildren(notice(sentenceOf(error), "problem"));
    }
  };
  const chosen = wallets().map(({ name, provider }) => button(`Use ${name}`, () => choose(provider)));
  const element = el(
    "form",
    { class: "claim" },
    el("label", { for: "owner" }, "Your address on Ethereum. It will own the token, and nobody can change it later."),
    input,
    ...(chosen.length > 0 ? [el("div", { class: "wallets" }, ...chosen)] : []),
    send,
    said,
  );
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const owner = input.value.trim();
    if (!isAddress(owner)) {
      said.replaceChildren(notice("This is no address: 0x and 40 hex digits. Copy it again.", "problem"));
      return;
    }
    send.disabled = true;
    try {
      showTaken(await take(key, claim, owner));
    } catch (error) {
      said.replaceChildren(notice(sentenceOf(error), "problem"));
      send.disabled = false;
    }
  });
  return element;
}

/** Signs the owner with the link's key, so that nobody on the way can lead the token elsewhere. */
async function take(key: Hex, { linkAddress, settlement }: PublicClaimLink, owner: Hex): Promise<TakenClaimLink> {
  const domain = { chainId: BigInt(settlement.chainId), contract: settlement.contract as Hex };
  const hash = hashTypedData(claimTypedData(domain, { link: linkAddress as Hex, owner }));
  const body = JSON.stringify({ ownerAddress: owner, signature: await sign({ hash, privateKey: key, to: "hex" }) });
  const headers = { "content-type": "application/json" };
  return ask(`/public/v1/claims/${linkAddress}`, { method: "POST", headers, body });
}

function showTaken({ ownerAddress, vaults }: TakenClaimLink): void {
  const each = vaults.map(({ vaultId, tokenId }) =>
    el("li", {}, link(`/explorer#/vaults/${vaultId}`, tokenId === null ? `Vault ${vaultId}` : `Token ${tokenId}`)),
  );
  show("It is yours", notice("The token is minted. It is in a vault on layer 2 that only its owner can withdraw."));
  main.append(facts([["Owner", code(ownerAddress)]]), el("ul", {}, ...each));
}

addEventListener("hashchange", () => void start());
void start();
