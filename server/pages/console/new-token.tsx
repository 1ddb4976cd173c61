import { useState } from "preact/hooks";
import type { Asset, PersonSignIn, TokenCreation, TokenProgress } from "../../client/index.ts";
import { pause } from "../shared/request.ts";
import { accountsOf, type Provider, switchChain, wallet } from "../shared/wallets.tsx";
import { call } from "./api.ts";
import {
  Action,
  Button,
  Failure,
  Form,
  Input,
  Notice,
  Select,
  type Texts,
  useAction,
  useLoad,
} from "./parts.tsx";

/** A token on its way, which this browser keeps so that a reload goes on with it. */
interface Pending {
  readonly txHash: string;
  readonly chainId: string;
}

const POLL_MS = 2_000;
const MINED_WITHIN_MS = 10 * 60_000;
const CONFIRM_LOCK =
  "Confirm in your wallet that this server's contract alone mints the token, for ever.";
const CONFIRM_REGISTRATION = "Confirm in your wallet that the token is registered.";
const STANDARDS = {
  erc721: "ERC-721: each token is one of a kind",
  erc1155: "ERC-1155: many of each kind",
  erc20: "ERC-20: points or money",
} as const;
const EACH_SALE = "ERC-721 and ERC-1155: what marketplaces ask of each sale (ERC-2981).";

function chosenWallet(): Provider {
  const provider = wallet();
  if (provider === null)
    throw new Error("This browser has no Ethereum wallet. Install one, then try again.");
  return provider;
}

async function send(provider: Provider, transaction: object): Promise<string> {
  return String(await provider.request({ method: "eth_sendTransaction", params: [transaction] }));
}

/**
 * Waits until the chain has mined a transaction. Rejects when it failed there, or when a wallet may
 * have replaced it.
 */
async function mined(provider: Provider, hash: string): Promise<void> {
  for (const end = Date.now() + MINED_WITHIN_MS; Date.now() < end; ) {
    const receipt = await provider.request({ method: "eth_getTransactionReceipt", params: [hash] });
    const { status } = (receipt ?? {}) as { readonly status?: string };
    if (status === "0x0")
      throw new Error("The chain refused the transaction. Look at it in your wallet, then go on.");
    if (status !== undefined) return;
    await pause(POLL_MS);
  }
  throw new Error(
    "No block has the transaction after ten minutes. If you sped it up or cancelled it, go on.",
  );
}

/** Sends what a new token still needs, and waits until its asset is here. */
async function follow({ txHash, chainId }: Pending, tell: (text: string) => void): Promise<Asset> {
  for (;;) {
    const { status, lock, register, asset } = await call<TokenProgress>(
      "PUT",
      `/console/v1/tokens/${txHash}`,
    );
    if (asset !== null) return asset;
    const step = lock ?? register;
    if (step !== null) {
      const provider = chosenWallet();
      await switchChain(provider, BigInt(chainId));
      const [from] = await accountsOf(provider);
      if (lock !== null && lock.from !== from)
        throw new Error(
          `The next step is its administrator's. Choose the account ${lock.from} in your wallet, then go on.`,
        );
      tell(lock === null ? CONFIRM_REGISTRATION : CONFIRM_LOCK);
      await mined(provider, await send(provider, { from, to: step.to, data: step.data }));
      continue;
    }
    tell(
      status === "registered"
        ? "The token is registered. The chain makes that final."
        : "The chain is at work.",
    );
    await pause(POLL_MS);
  }
}

/**
 * Creates a token by the browser's wallet, which pays for it. Absent where the operator adds tokens
 * itself.
 */
export function NewToken({ signIn }: { signIn: PersonSignIn }) {
  const key = `mintmark-new-token ${signIn.person.applicationId}`;
  const settings = useLoad(
    async () => (await fetch("/console/settings.json")).json(),
    "settings",
  ).value;
  const [standard, setStandard] = useState("erc721");
  const [pending, setPending] = useState<Pending | null>(() =>
    JSON.parse(localStorage.getItem(key) ?? "null"),
  );
  const [said, setSaid] = useState<string | null>(null);
  const { busy, error, run } = useAction();
  if (settings === undefined || !settings.newTokens) return null;
  const keep = (next: Pending | null) => {
    localStorage.setItem(key, JSON.stringify(next));
    setPending(next);
  };
  const goOn = (one: Pending) =>
    run(async () => {
      const asset = await follow(one, setSaid);
      keep(null);
      setSaid(`${asset.name} is here, registered and enabled.`);
    });
  const create = async ({ receiver, percent, transferable, ...token }: Texts) => {
    const provider = chosenWallet();
    const [account] = await accountsOf(provider);
    const { chainId, data } = await call<TokenCreation>("POST", "/console/v1/tokens", {
      admin: account,
      ...token,
      ...(percent !== undefined && { royalty: { receiver: receiver ?? account, percent } }),
      transferable: transferable === "on",
    });
    await switchChain(provider, BigInt(chainId));
    setSaid("Confirm in your wallet that the token is created.");
    const started = { txHash: await send(provider, { from: account, data }), chainId };
    keep(started);
    void goOn(started);
  };
  return (
    <section>
      <h2>New token</h2>
      <p class="quiet wide">
        Your wallet creates the contract and pays the chain for it, in three transactions. Then your
        application can mint it.
      </p>
      {pending === null ? (
        <Form label="New token" action="Create token" send={create}>
          <Select
            label="Standard"
            name="standard"
            value={standard}
            options={STANDARDS}
            onChange={(event) => setStandard(event.currentTarget.value)}
          />
          <Input label="Name" name="name" required maxLength={200} />
          <Input label="Symbol" name="symbol" required maxLength={50} />
          {standard === "erc20" ? (
            <Input
              label="Most that can ever exist (empty: no limit)"
              name="cap"
              inputMode="decimal"
            />
          ) : (
            <>
              <Input label="Metadata (empty: at this server)" name="uri" placeholder="ipfs://…/" />
              <Input
                label="Royalty of each sale, percent"
                name="percent"
                inputMode="decimal"
                title={EACH_SALE}
              />
              <Input label="Who gets it (empty: your wallet)" name="receiver" placeholder="0x…" />
            </>
          )}
          <Input label="Who administers it (empty: your wallet)" name="admin" placeholder="0x…" />
          <Input
            label="Owners can give it away before a withdrawal"
            name="transferable"
            type="checkbox"
          />
        </Form>
      ) : (
        <div class="actions">
          <Button main disabled={busy} onClick={() => goOn(pending)} text="Go on with the token" />
          <Action
            text="Forget it"
            ask="Forget this token? Its contract stays on the chain."
            work={() => keep(null)}
          />
        </div>
      )}
      {said && error === null && <Notice>{said}</Notice>}
      {error && <Failure error={error} />}
    </section>
  );
}
