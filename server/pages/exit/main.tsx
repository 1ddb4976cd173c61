import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { requireWholeKit } from "../../../core/exit/browser.ts";
import { counted, grouped, moment, sentenceOf } from "../shared/format.ts";
import { Button, code, Facts, Failure, Notice, show, useAction } from "../shared/parts.tsx";
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
  type Outcome,
  parseExitKit,
  withdraw,
} from "../withdraw/main.tsx";

/** Kits of one owner and one contract. */
type Kits = readonly [ExitKit, ...(readonly ExitKit[])];

/** The contract's answers about the kits, through one wallet. */
interface Connection {
  readonly wallet: Wallet;
  readonly checked: ReadonlyMap<ExitKit, Checked>;
  readonly spent: readonly string[];
}

async function readKits(files: Iterable<File>): Promise<Kits | null> {
  const read: ExitKit[] = [];
  for (const file of files) {
    try {
      const kit = parseExitKit(await file.text());
      requireWholeKit(kit);
      read.push(kit);
    } catch (error) {
      throw new Error(`${file.name}: ${sentenceOf(error)}`);
    }
  }
  const [first, ...others] = read;
  if (first === undefined) return null;
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
  kits: Kits,
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
  return { wallet, checked, spent };
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
  const [kits, setKits] = useState<Kits | null>(null);
  const [connection, setConnection] = useState<Connection | null>(null);
  const reading = useAction();
  const choose = (files: Iterable<File>) => {
    setKits(null);
    setConnection(null);
    void reading.run(async () => setKits(await readKits(files)));
  };
  return (
    <main id="main">
      <h1>Take your tokens to L1</h1>
      <p class="lead">
        This page withdraws a token with its exit kit and your wallet. It needs no server and no
        operator, and sends nothing to anyone but your wallet.
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
        {kits && (
          <>
            <Notice>
              {kits.length === 1
                ? "The proof in this file is whole."
                : "The proofs in these files are whole."}
            </Notice>
            <div class="cards">
              {kits.map((kit) => (
                <Kit key={kit.tip.vaultId} kit={kit} checked={connection?.checked.get(kit)} />
              ))}
            </div>
          </>
        )}
      </Step>
      <Step number={2} title="Your wallet">
        {kits === null && <p class="quiet">Choose an exit kit first.</p>}
        {kits && <Wallets kits={kits} connection={connection} onConnected={setConnection} />}
      </Step>
      <Step number={3} title="Withdraw">
        {connection === null && <p class="quiet">Connect the wallet first.</p>}
        {connection && <Withdrawal connection={connection} onAgain={() => setConnection(null)} />}
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
  readonly kits: Kits;
  readonly connection: Connection | null;
  onConnected(connection: Connection): void;
}

function Wallets({ kits, connection, onConnected }: WalletsProps) {
  const found = useWallets();
  const [text, say] = useState("");
  const { busy, error, run } = useAction();
  if (found.length === 0) return <Notice>{NO_WALLET}</Notice>;
  if (connection !== null) {
    return (
      <>
        <Notice>
          {`${connection.wallet.name} is connected with the owner's account. The contract has checked ${counted(kits.length, "proof")}.`}
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
        onChoose={(wallet) => run(async () => onConnected(await connect(wallet, kits, say)))}
      />
      {busy && <p class="quiet">{text}</p>}
      {error && <Failure error={error} />}
    </>
  );
}

function Withdrawal({ connection, onAgain }: { connection: Connection; onAgain: () => void }) {
  const { wallet, checked } = connection;
  const [sent, setSent] = useState<string | null>(null);
  const [outcomes, setOutcomes] = useState<readonly Outcome[] | null>(null);
  const { busy, error, run } = useAction();
  const kits = [...checked.keys()];
  const [first] = kits;
  if (first === undefined) return <p class="quiet">Nothing is left to withdraw.</p>;
  const { owner } = first.tip;
  const start = () =>
    run(async () => {
      setSent(null);
      setOutcomes(await withdraw(wallet.provider, owner, kits, setSent));
    });
  const what = (vaultId: bigint) => {
    const kit = kits.find(({ tip }) => tip.vaultId === vaultId) ?? first;
    return [amountOf(kit, checked.get(kit)), nameOf(kit, checked.get(kit))]
      .filter((text) => text !== null)
      .join(" of ");
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
          <Button main disabled={busy} onClick={start} text="Withdraw" />
        </p>
      )}
      {busy && (
        <p role="status" class="quiet">
          {sent === null
            ? "Answer the request in your wallet…"
            : ["Sent: ", <code key="sent">{sent}</code>, ". Waiting for L1…"]}
        </p>
      )}
      {error && <Failure error={error} />}
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
