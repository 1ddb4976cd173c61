import { requireWholeKit } from "../../../core/guards/exit/browser.ts";
import { button, code, el, facts, fill, notice } from "../explorer/dom.ts";
import { counted, moment, sentenceOf } from "../shared/format.ts";
import { accountsOf, onWallet, type Provider, switchChain, type Wallet, wallets } from "../shared/wallets.ts";
import { type Checked, check, type ExitKit, parseExitKit, withdraw } from "../withdraw/main.ts";

/** A kit whose contract has verified it. */
interface Ready {
  readonly kit: ExitKit;
  readonly checked: Checked;
}

const place = (id: string) => document.getElementById(id) as HTMLElement;
const files = place("kits") as HTMLInputElement;
let kits: readonly ExitKit[] = [];

files.addEventListener("change", () => void fill(place("shown"), readKits));
onWallet(() => {
  if (kits.length > 0) offerWallets();
});

/** Reads the files and checks each kit by itself. */
async function readKits(): Promise<Node[]> {
  kits = [];
  place("wallet").replaceChildren(quiet("Choose an exit kit first."));
  place("withdraw").replaceChildren(quiet("Connect the wallet first."));
  const read: ExitKit[] = [];
  for (const file of files.files ?? []) {
    try {
      const kit = parseExitKit(await file.text());
      requireWholeKit(kit);
      read.push(kit);
    } catch (error) {
      throw new Error(`${file.name}: ${sentenceOf(error)}`);
    }
  }
  const [first] = read;
  if (first === undefined) return [];
  requireTogether(first, read);
  kits = read;
  offerWallets();
  return [
    notice(read.length === 1 ? "The proof in this file is whole." : "The proofs in these files are whole."),
    ...read.map(kitFacts),
  ];
}

/** One transaction is one owner's, to one contract. */
function requireTogether({ settlement, tip }: ExitKit, all: readonly ExitKit[]): void {
  if (
    all.some((kit) => kit.settlement.contract !== settlement.contract || kit.settlement.chainId !== settlement.chainId)
  )
    throw new Error("These kits are for different contracts. Choose those of one contract.");
  if (all.some((kit) => kit.tip.owner !== tip.owner))
    throw new Error("These kits have different owners. Choose those of one owner.");
  if (new Set(all.map((kit) => kit.tip.vaultId)).size < all.length)
    throw new Error("Two of the kits are of one vault. Choose one of them.");
}

function kitFacts({ vault, tip, hops = [], token, settlement, maturesAt }: ExitKit): HTMLElement {
  const matures = maturesAt === null ? [] : [["Can leave from", moment(maturesAt)] as const];
  return facts([
    ["Vault", String(tip.vaultId)],
    ...(hops.length === 0
      ? []
      : [["Minted as", `vault ${vault.vaultId}, ${counted(hops.length, "transfer")} ago`] as const]),
    ["Owner", code(tip.owner)],
    ["Token", code(token.address)],
    ["Standard", token.standard.replace("erc", "ERC-")],
    ...(token.tokenId === null ? [] : [["Token id", code(String(token.tokenId))] as const]),
    ["Amount", counted(tip.amount, "unit")],
    ...matures,
    ["Contract", code(settlement.contract)],
    ["Chain", String(settlement.chainId)],
  ]);
}

function offerWallets(): void {
  const found = wallets();
  if (found.length === 0) {
    place("wallet").replaceChildren(
      notice(
        "This browser shows no wallet to this page. Allow your wallet on file addresses, or open the page from a server.",
      ),
    );
    return;
  }
  const connect = (one: Wallet) => button(`Connect ${one.name}`, () => fill(place("wallet"), () => connected(one)));
  place("wallet").replaceChildren(el("div", { class: "choices" }, ...found.map(connect)));
}

/** Brings the wallet to the kits' chain and owner, and has the contract verify the kits. */
async function connected({ name, provider }: Wallet): Promise<Node[]> {
  const [first] = kits;
  if (first === undefined) return [];
  const { owner } = first.tip;
  place("wallet").replaceChildren(quiet("Answer the request in your wallet…"));
  const accounts = await accountsOf(provider);
  if (!accounts.includes(owner)) {
    const shown = accounts.length === 0 ? "no account" : accounts.join(", ");
    throw new Error(`The owner is ${owner}; the wallet shows ${shown}. Choose the owner's account in the wallet.`);
  }
  await switchChain(provider, first.settlement.chainId);
  const ready: Ready[] = [];
  const spent: string[] = [];
  for (const [i, kit] of kits.entries()) {
    place("wallet").replaceChildren(quiet(`The contract checks proof ${i + 1} of ${kits.length}…`));
    try {
      ready.push({ kit, checked: await check(provider, owner, kit) });
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code !== "insufficient_balance" && code !== "vault_spent") throw error;
      const what = code === "vault_spent" ? "This kit no longer pays." : `Vault ${kit.tip.vaultId}:`;
      spent.push(`${what} ${sentenceOf(error)}`);
    }
  }
  place("withdraw").replaceChildren(...offer(provider, owner, ready));
  return [
    notice(`${name} is connected with the owner's account. The contract has checked ${counted(kits.length, "proof")}.`),
    ...spent.map((text) => notice(text, "problem")),
  ];
}

function offer(provider: Provider, owner: `0x${string}`, ready: readonly Ready[]): Node[] {
  if (ready.length === 0) return [quiet("Nothing is left to withdraw.")];
  const rows = ready.map(({ kit: { tip, token }, checked: { left, baseUnits } }) => {
    const what = token.tokenId === null ? `${baseUnits.toLocaleString()} base units` : `token ${token.tokenId}`;
    return [`Vault ${tip.vaultId}`, `${counted(left, "unit")}: ${what}`] as const;
  });
  const result = el("div", {});
  const start = button("Withdraw", async () => {
    (start as HTMLButtonElement).disabled = true;
    try {
      await run(provider, owner, ready, result);
    } catch (error) {
      result.replaceChildren(notice(sentenceOf(error), "problem"));
      (start as HTMLButtonElement).disabled = false;
    }
  });
  return [
    el("p", {}, "Your wallet sends the transaction, and you pay its gas. The tokens go to ", code(owner), "."),
    facts(rows),
    el("p", {}, start),
    result,
  ];
}

/** Sends the transactions and follows them to their receipts. */
async function run(
  provider: Provider,
  owner: `0x${string}`,
  ready: readonly Ready[],
  result: HTMLElement,
): Promise<void> {
  result.replaceChildren(quiet("Answer the request in your wallet…"));
  const sent = (txHash: string) =>
    result.replaceChildren(el("p", { role: "status" }, "Sent: ", code(txHash), ". Waiting for L1…"));
  const outcomes = await withdraw(
    provider,
    owner,
    ready.map(({ kit }) => kit),
    sent,
  );
  result.replaceChildren(
    ...outcomes.map(({ vaultId, txHash, refusal }) =>
      refusal === null
        ? notice(`Vault ${vaultId} is paid: its tokens are on L1, by transaction ${txHash}.`)
        : notice(`Vault ${vaultId} was not paid. ${refusal}`, "problem"),
    ),
    ...(outcomes.some(({ refusal }) => refusal !== null) ? [button("Check again", () => offerWallets())] : []),
  );
}

function quiet(text: string): HTMLElement {
  return el("p", { class: "quiet" }, text);
}
