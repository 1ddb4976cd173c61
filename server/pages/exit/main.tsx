import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { requireWholeKit } from "../../../core/exit/browser.ts";
import { counted, grouped, moment, sentenceOf } from "../shared/format.ts";
import {
  Button,
  code,
  download,
  Facts,
  Failure,
  Notice,
  onSent,
  show,
  useAction,
} from "../shared/parts.tsx";
import { amountText } from "../shared/tokens.tsx";
import {
  accountsOf,
  switchChain,
  useWallets,
  type Wallet,
  WalletButtons,
} from "../shared/wallets.tsx";
import {
  type Checked,
  check,
  type ExitKit,
  makeOffer,
  names,
  OFFER_FORMAT,
  type Offer,
  type Outcome,
  parseExitKit,
  parseOffer,
  type RenewedVault,
  renew,
  settle,
  type TokenNames,
  withdraw,
} from "../withdraw/main.tsx";

/** Kits of one owner and one contract, and an offer that the owner may take. */
interface Chosen {
  readonly kits: Kits;
  readonly offer: Offer | null;
}

type Kits = readonly [ExitKit, ...(readonly ExitKit[])];

/** The contract's answers about the kits, through one wallet. */
interface Connection {
  readonly wallet: Wallet;
  readonly checked: ReadonlyMap<ExitKit, Checked>;
  readonly spent: readonly string[];
  readonly offer: { readonly offer: Offer; readonly named: TokenNames } | null;
}

async function readFiles(files: Iterable<File>): Promise<Chosen | null> {
  const read: ExitKit[] = [];
  const offers: Offer[] = [];
  for (const file of files) {
    try {
      const text = await file.text();
      if (text.slice(0, 100).includes(`"${OFFER_FORMAT}"`)) {
        offers.push(parseOffer(text));
        continue;
      }
      const kit = parseExitKit(text);
      requireWholeKit(kit);
      read.push(kit);
    } catch (error) {
      throw new Error(`${file.name}: ${sentenceOf(error)}`);
    }
  }
  const [offer = null, ...more] = offers;
  if (more.length > 0) throw new Error("Choose one offer at a time.");
  const kits = kitsOf(read);
  if (offer === null) return kits && { kits, offer };
  requireWholeKit(offer.kit);
  if (kits === null || kits.length > 1)
    throw new Error("Choose the offer together with the exit kit of the one vault that you give.");
  const { settlement } = offer.kit;
  if (
    settlement.contract !== kits[0].settlement.contract ||
    settlement.chainId !== kits[0].settlement.chainId
  )
    throw new Error("The offer is for another contract than your kit.");
  return { kits, offer };
}

function kitsOf([first, ...others]: readonly ExitKit[]): Kits | null {
  if (first === undefined) return null;
  const read = [first, ...others];
  // One transaction is one owner's, to one contract.
  const different = (of: (kit: ExitKit) => unknown) => others.some((kit) => of(kit) !== of(first));
  if (
    different(({ settlement }) => settlement.contract) ||
    different(({ settlement }) => settlement.chainId)
  )
    throw new Error("These kits are for different contracts. Choose those of one contract.");
  if (different(({ tip }) => tip.owner))
    throw new Error("These kits have different owners. Choose those of one owner.");
  if (new Set(read.map(({ tip }) => tip.vaultId)).size < read.length)
    throw new Error("Two of the kits are of one vault. Choose one of them.");
  return [first, ...others];
}

/** Brings the wallet to the kits' chain and owner, and has the contract verify the kits. */
async function connect(
  wallet: Wallet,
  { kits, offer }: Chosen,
  say: (text: string) => void,
): Promise<Connection> {
  const { provider } = wallet;
  const [first] = kits;
  const { owner } = first.tip;
  say("Answer the request in your wallet…");
  const accounts = await accountsOf(provider);
  if (!accounts.includes(owner)) {
    const shown = accounts.length === 0 ? "no account" : accounts.join(", ");
    throw new Error(
      `The owner is ${owner}; the wallet shows ${shown}. Choose the owner's account in the wallet.`,
    );
  }
  await switchChain(provider, first.settlement.chainId);
  const checked = new Map<ExitKit, Checked>();
  const spent: string[] = [];
  for (const [i, kit] of kits.entries()) {
    say(`The contract checks proof ${i + 1} of ${kits.length}…`);
    try {
      checked.set(kit, await check(provider, owner, kit));
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code !== "insufficient_balance" && code !== "vault_spent") throw error;
      const what = code === "vault_spent" ? "This kit no longer pays." : `${nameOf(kit)}:`;
      spent.push(`${what} ${sentenceOf(error)}`);
    }
  }
  const named = offer && { offer, named: await names(provider, offer.kit.token) };
  return { wallet, checked, spent, offer: named };
}

function nameOf({ token }: ExitKit, checked?: Checked): string {
  if (token.tokenId !== null)
    return checked?.name ? `${checked.name}, token ${token.tokenId}` : `Token ${token.tokenId}`;
  return checked?.name ?? "Fungible tokens";
}

/**
 * Whole tokens where the token's contract tells its decimals. Null for the one token of an ERC-721.
 */
function amountOf({ token, tip }: ExitKit, checked?: Checked): string | null {
  const units = checked?.left ?? tip.amount;
  if (token.standard !== "erc20") return units === 1n ? null : grouped(`${units}`);
  return amountText(units, "0x", { ...checked, quantum: String(token.quantum) });
}

function Kit({ kit, checked }: { kit: ExitKit; checked: Checked | undefined }) {
  const { vault, tip, hops = [], token, settlement, maturesAt } = kit;
  const amount = amountOf(kit, checked);
  return (
    <div class="card">
      <h3>
        <bdi>{nameOf(kit, checked)}</bdi>
      </h3>
      {amount !== null && (
        <p class="amount">
          <bdi>{amount}</bdi>
        </p>
      )}
      {maturesAt !== null && <p class="quiet">Can leave from {moment(maturesAt)}.</p>}
      <details>
        <summary>Details</summary>
        <Facts
          of={[
            ["Owner", code(tip.owner)],
            ["Token", code(token.address)],
            ["Standard", token.standard.replace("erc", "ERC-")],
            ["Vault", String(tip.vaultId)],
            [
              "Minted as",
              hops.length === 0
                ? null
                : `vault ${vault.vaultId}, ${counted(hops.length, "transfer")} ago`,
            ],
            ["Units", tip.amount.toLocaleString("en")],
            ["Contract", code(settlement.contract)],
            ["Chain", String(settlement.chainId)],
          ]}
        />
      </details>
    </div>
  );
}

function Step({
  number,
  title,
  children,
}: {
  number: number;
  title: string;
  children: ComponentChildren;
}) {
  return (
    <section aria-labelledby={`step-${number}`}>
      <h2 id={`step-${number}`}>{`${number}. ${title}`}</h2>
      <div aria-live="polite">{children}</div>
    </section>
  );
}

function App() {
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [connection, setConnection] = useState<Connection | null>(null);
  const reading = useAction();
  const choose = (files: Iterable<File>) => {
    setChosen(null);
    setConnection(null);
    void reading.run(async () => setChosen(await readFiles(files)));
  };
  return (
    <main id="main">
      <h1>Take your tokens to L1</h1>
      <p class="lead">
        This page withdraws, renews or trades a token with its exit kit and your wallet. It needs no
        server and no operator, and sends nothing to anyone but your wallet.
      </p>
      <Step number={1} title="Your exit kit">
        <p>
          <label for="kits">The file, or several of them</label>
        </p>
        <p>
          <input
            id="kits"
            type="file"
            accept=".json,application/json"
            multiple
            onChange={(event) => choose([...(event.currentTarget.files ?? [])])}
          />
        </p>
        {reading.error && <Failure error={reading.error} />}
        {chosen && (
          <>
            <Notice>
              {chosen.kits.length === 1 && chosen.offer === null
                ? "The proof in this file is whole."
                : "The proofs in these files are whole."}
            </Notice>
            <div class="cards">
              {chosen.kits.map((kit) => (
                <Kit key={kit.tip.vaultId} kit={kit} checked={connection?.checked.get(kit)} />
              ))}
            </div>
          </>
        )}
      </Step>
      <Step number={2} title="Your wallet">
        {chosen === null && <p class="quiet">Choose an exit kit first.</p>}
        {chosen && <Wallets chosen={chosen} connection={connection} onConnected={setConnection} />}
      </Step>
      <Step number={3} title={chosen?.offer ? "Trade" : "Withdraw"}>
        {connection === null && <p class="quiet">Connect the wallet first.</p>}
        {connection && <Acts connection={connection} onAgain={() => setConnection(null)} />}
      </Step>
      <footer>
        <p class="quiet">
          The page checks each proof in this browser, and the contract checks it again before it
          pays. You can save this page as one file and open it without a network: it does the same
          then.
        </p>
      </footer>
    </main>
  );
}

const NO_WALLET =
  "This browser shows no wallet to this page. Allow your wallet on file addresses, or open the page from a server.";

interface WalletsProps {
  readonly chosen: Chosen;
  readonly connection: Connection | null;
  onConnected(connection: Connection): void;
}

function Wallets({ chosen, connection, onConnected }: WalletsProps) {
  const found = useWallets();
  const [text, say] = useState("");
  const { busy, error, run } = useAction();
  if (found.length === 0) return <Notice>{NO_WALLET}</Notice>;
  if (connection !== null) {
    return (
      <>
        <Notice>
          {`${connection.wallet.name} is connected with the owner's account. The contract has checked ${counted(chosen.kits.length, "proof")}.`}
        </Notice>
        {connection.spent.map((each) => (
          <Notice key={each} problem>
            {each}
          </Notice>
        ))}
      </>
    );
  }
  return (
    <>
      <WalletButtons
        main
        verb="Connect"
        disabled={busy}
        onChoose={(wallet) => run(async () => onConnected(await connect(wallet, chosen, say)))}
      />
      {busy && <p class="quiet">{text}</p>}
      {error && <Failure error={error} />}
    </>
  );
}

/** Shows first what the files are for, and the rest behind a click. */
function Acts({ connection, onAgain }: { connection: Connection; onAgain: () => void }) {
  const { checked, offer } = connection;
  const [kit, ...more] = checked.keys();
  if (kit === undefined) return <p class="quiet">Nothing is left to withdraw.</p>;
  if (offer !== null) return <Trade connection={connection} kit={kit} />;
  return (
    <>
      <Withdrawal connection={connection} onAgain={onAgain} />
      <details>
        <summary>Renew instead: make one vault of them</summary>
        <Renewal connection={connection} />
      </details>
      {more.length === 0 && (
        <details>
          <summary>Offer it for something else</summary>
          <NewOffer connection={connection} kit={kit} />
        </details>
      )}
    </>
  );
}

/** A transaction of the owner, from the wallet's question to its end. */
function useSending() {
  const [sent, setSent] = useState<string | null>(null);
  const { busy, error, run } = useAction();
  const start = (work: (onSent: (txHash: string) => void) => Promise<void>) => {
    setSent(null);
    return run(() => work(setSent));
  };
  const told = (
    <>
      {busy && (
        <p role="status" class="quiet">
          {sent === null
            ? "Answer the request in your wallet…"
            : ["Sent: ", <code key="sent">{sent}</code>, ". Waiting for L1…"]}
        </p>
      )}
      {error && <Failure error={error} />}
    </>
  );
  return { busy, start, told };
}

function whatOf(kit: ExitKit, checked: Checked | undefined): string {
  return [amountOf(kit, checked), nameOf(kit, checked)]
    .filter((text) => text !== null)
    .join(" of ");
}

function Renewal({ connection: { wallet, checked } }: { connection: Connection }) {
  const [made, setMade] = useState<readonly RenewedVault[] | null>(null);
  const { busy, start, told } = useSending();
  const [first, ...others] = checked.keys();
  if (first === undefined) return null;
  const send = () =>
    start(async (onSent) =>
      setMade(await renew(wallet.provider, first.tip.owner, [first, ...others], onSent)),
    );
  return (
    <>
      <p>
        Your own transaction makes new vaults of all that is left: one for each token. Small amounts
        become one, and a vault that was transferred often begins anew. Keep the kit of the new
        vault: <code>mintmark exit-kit</code> makes it from L1.
      </p>
      {made === null && <Button disabled={busy} onClick={send} text="Renew" />}
      {told}
      {made?.map(({ vaultId }) => (
        <Notice key={vaultId}>{`Renewed. L1 has made vault ${vaultId}.`}</Notice>
      ))}
    </>
  );
}

interface KitProps {
  connection: Connection;
  kit: ExitKit;
}

function NewOffer({ connection: { wallet }, kit }: KitProps) {
  const { busy, error, run } = useAction();
  const [isSaved, setSaved] = useState(false);
  const sign = onSent((fields) =>
    run(async () => {
      setSaved(false);
      const text = (name: string) => String(fields.get(name)).trim();
      if (!/^0x[0-9a-fA-F]{40}$/.test(text("token")))
        throw new Error("Enter the contract of the token that you want: 0x and 40 hex digits.");
      if (!/^\d*$/.test(text("id"))) throw new Error("The token's id is a whole number.");
      if (!/^\d{1,40}(?:\.\d{1,36})?$/.test(text("amount")))
        throw new Error("Enter the amount, such as 250 or 12.5.");
      const wanted = {
        token: text("token").toLowerCase() as `0x${string}`,
        tokenId: text("id") === "" ? null : BigInt(text("id")),
        amount: text("amount"),
      };
      const file = await makeOffer(wallet.provider, kit.tip.owner, kit, wanted);
      download(`offer-${kit.tip.vaultId}.json`, new Blob([file], { type: "application/json" }));
      setSaved(true);
    }),
  );
  return (
    <form class="claim" autocomplete="off" onSubmit={sign}>
      <p>
        You sign what you want for the whole vault, and give the file to whoever has it. That owner
        settles the trade on this page. Until then nothing moves. Whoever has the file can take the
        offer for seven days; a withdrawal or a renewal of the vault ends it.
      </p>
      <label>
        Contract of the token that you want
        <input name="token" placeholder="0x…" />
      </label>
      <label>
        Its id, if it has ids
        <input name="id" inputMode="numeric" />
      </label>
      <label>
        How much of it
        <input name="amount" inputMode="decimal" placeholder="250" />
      </label>
      <div class="choices">
        <Button submit disabled={busy} text="Sign the offer" />
      </div>
      {error && <Failure error={error} />}
      {isSaved && <Notice>The offer is signed and saved.</Notice>}
    </form>
  );
}

function Trade({ connection: { wallet, checked, offer }, kit }: KitProps) {
  const [txHash, setDone] = useState<string | null>(null);
  const { busy, start, told } = useSending();
  if (offer === null) return null;
  const {
    offer: { kit: theirs, order },
    named,
  } = offer;
  const got = order.give.amount / theirs.token.quantum;
  const given = order.want.amount / kit.token.quantum;
  const send = () =>
    start(async (onSent) =>
      setDone(await settle(wallet.provider, kit.tip.owner, { kit, offer: offer.offer }, onSent)),
    );
  return (
    <>
      <p>
        You give <bdi>{whatOf(kit, { ...namesIn(checked.get(kit)), left: given })}</bdi> and get{" "}
        <bdi>{whatOf(theirs, { ...named, left: got })}</bdi> of <code>{theirs.tip.owner}</code>. L1
        settles both sides or neither, and makes a new vault for each.
      </p>
      <p>Your wallet sends the transaction, and you pay its gas.</p>
      {txHash === null && (
        <p>
          <Button main disabled={busy} onClick={send} text="Trade" />
        </p>
      )}
      {told}
      {txHash !== null && <Notice>{`Traded, by transaction ${txHash}.`}</Notice>}
    </>
  );
}

function namesIn(checked: Checked | undefined): TokenNames {
  return checked ?? { name: null, symbol: null, decimals: null };
}

function Withdrawal({ connection, onAgain }: { connection: Connection; onAgain: () => void }) {
  const { wallet, checked } = connection;
  const [outcomes, setOutcomes] = useState<readonly Outcome[] | null>(null);
  const { busy, start, told } = useSending();
  const kits = [...checked.keys()];
  const [first] = kits;
  if (first === undefined) return null;
  const { owner } = first.tip;
  const send = () =>
    start(async (onSent) => setOutcomes(await withdraw(wallet.provider, owner, kits, onSent)));
  const what = (vaultId: bigint) => {
    const kit = kits.find(({ tip }) => tip.vaultId === vaultId) ?? first;
    return whatOf(kit, checked.get(kit));
  };
  return (
    <>
      <p>
        Your wallet sends the transaction, and you pay its gas. The tokens go to{" "}
        <code>{owner}</code>.
      </p>
      <ul>
        {kits.map(({ tip }) => (
          <li key={tip.vaultId}>
            <bdi>{what(tip.vaultId)}</bdi>
          </li>
        ))}
      </ul>
      {outcomes === null && (
        <p>
          <Button main disabled={busy} onClick={send} text="Withdraw" />
        </p>
      )}
      {told}
      {outcomes?.map(({ vaultId, txHash, refusal }) => (
        <Notice key={vaultId} problem={refusal !== null}>
          <bdi>{what(vaultId)}</bdi>
          {refusal === null
            ? `: paid. It is on L1, by transaction ${txHash}.`
            : `: not paid. ${refusal}`}
        </Notice>
      ))}
      {outcomes?.some(({ refusal }) => refusal !== null) && (
        <Button onClick={onAgain} text="Check again" />
      )}
    </>
  );
}

show(<App />);
