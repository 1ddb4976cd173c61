import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Hex, hashTypedData, isAddress, toHex } from "viem";
import { privateKeyToAddress, sign } from "viem/accounts";
import { claimTypedData } from "../../../core/protocol/index.ts";
import type { PublicClaimLink, TakenClaimLink } from "../../client/index.ts";
import { grouped } from "../shared/format.ts";
import * as ui from "../shared/parts.tsx";
import { request } from "../shared/request.ts";
import { type Metadata, metadataAt, Picture, textIn } from "../shared/tokens.tsx";
import { accountsOf, WalletButtons } from "../shared/wallets.tsx";

/**
 * The link's private key and address. The key is in the fragment, which browsers send to no server.
 */
function linkIn(fragment: string): { readonly secret: Hex; readonly address: Hex } | null {
  if (!/^[A-Za-z0-9_-]{43}$/.test(fragment)) return null;
  const bytes = atob(`${fragment.replaceAll("-", "+").replaceAll("_", "/")}=`);
  try {
    const secret = toHex(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
    return { secret, address: privateKeyToAddress(secret) };
  } catch {
    return null;
  }
}

const pathOf = (linkAddress: string) => `/public/v1/claims/${linkAddress}`;

const ENDED: Readonly<Record<string, string>> = {
  claimed: "This link has been used.",
  cancelled: "The application has cancelled this link. Ask for another.",
  expired: "This link has expired. Ask whoever gave it to you for another.",
};

function Page({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <main id="main" class="narrow" aria-live="polite">
      <h1>{title}</h1>
      {children}
    </main>
  );
}

function App() {
  const fragment = ui.useHash();
  const link = linkIn(fragment);
  if (link === null) {
    return (
      <Page title="This link is incomplete">
        <p>Open it again from where you have it, or scan the code again.</p>
      </Page>
    );
  }
  return <Link key={fragment} {...link} />;
}

function Link({ secret, address }: { secret: Hex; address: Hex }) {
  const link = ui.useLoad(
    async (): Promise<PublicClaimLink> => (await request(pathOf(address))).json(),
    address,
  );
  const [taken, setTaken] = useState<TakenClaimLink | null>(null);
  const title = taken ? "It is yours" : link.error ? "This link does not work" : "Claim a token";
  const ended = link.value && ENDED[link.value.status];
  return (
    <Page title={title}>
      <ui.Shown of={link}>
        {(shown) => (
          <>
            <Token claim={shown} />
            {taken ? (
              <Taken {...taken} />
            ) : ended ? (
              <ui.Notice>{ended}</ui.Notice>
            ) : (
              <Form {...{ secret, onTaken: setTaken }} claim={shown} />
            )}
          </>
        )}
      </ui.Shown>
    </Page>
  );
}

/** The token's own metadata, or that of its contract. */
async function readMetadata({
  asset: { assetId },
  tokenId,
}: PublicClaimLink): Promise<Metadata | null> {
  const path = `/public/v1/metadata/${assetId}`;
  const own = tokenId === null ? null : await metadataAt(`${path}/${tokenId}`);
  return own ?? metadataAt(path);
}

/** Shows the token. The application, which gave the link, also chose the image. */
function Token({ claim }: { claim: PublicClaimLink }) {
  const { asset, tokenId, amount, quantity, expiresAt, status, ownerAddress } = claim;
  const metadata = ui.useLoad(() => readMetadata(claim), asset.assetId).value ?? {};
  const name = textIn(metadata, "name") ?? asset.name;
  const description = textIn(metadata, "description");
  const facts: readonly ui.Fact[] = [
    ["Token", name === asset.name ? null : `${asset.name} (${asset.symbol})`],
    ["Id", tokenId],
    ["Tokens", quantity !== null && quantity > 1 ? String(quantity) : null],
    ["Owner", ownerAddress && ui.code(ownerAddress)],
    [
      "Claim until",
      expiresAt !== null && status === "open" ? new Date(expiresAt).toLocaleString() : null,
    ],
  ];
  const isFungible = asset.standard === "erc20";
  return (
    <section class="card gift" aria-label="The token">
      <Picture source={textIn(metadata, "image")} name={name} asked />
      <div>
        <h2>
          <bdi>{name}</bdi>
        </h2>
        {amount !== null && (
          <p class="amount">
            <bdi>
              {isFungible
                ? `${grouped(amount)} ${asset.symbol}`
                : `${grouped(amount)} of token ${tokenId}`}
            </bdi>
          </p>
        )}
        {description !== null && <p>{description}</p>}
        <ui.Facts of={facts} />
      </div>
    </section>
  );
}

interface FormProps {
  secret: Hex;
  claim: PublicClaimLink;
  onTaken: (taken: TakenClaimLink) => void;
}

function Form({ secret, claim, onTaken }: FormProps) {
  const [owner, setOwner] = useState("");
  const { busy, error, run } = ui.useAction();
  const submit = ui.onSent(() =>
    run(async () => {
      const address = owner.trim();
      if (!isAddress(address))
        throw new Error("This is no address: 0x and 40 hex digits. Copy it again.");
      onTaken(await take(secret, claim, address));
    }),
  );
  return (
    <form class="claim" autocomplete="off" onSubmit={submit}>
      <label for="owner">
        Your address on Ethereum. It will own the token, and nobody can change it later.
      </label>
      <WalletButtons
        verb="Use"
        onChoose={({ provider }) =>
          run(async () => setOwner((await accountsOf(provider))[0] ?? ""))
        }
      />
      <input
        id="owner"
        value={owner}
        onInput={(event) => setOwner(event.currentTarget.value)}
        placeholder="0x…"
        required
      />
      <ui.Button submit main disabled={busy} text="Claim" />
      {error && <ui.Failure error={error} />}
    </form>
  );
}

/** Signs the owner with the link's key, so that nobody on the way can lead the token elsewhere. */
async function take(
  key: Hex,
  { linkAddress, settlement }: PublicClaimLink,
  owner: Hex,
): Promise<TakenClaimLink> {
  const domain = { chainId: BigInt(settlement.chainId), contract: settlement.contract as Hex };
  const hash = hashTypedData(claimTypedData(domain, { link: linkAddress as Hex, owner }));
  const body = { ownerAddress: owner, signature: await sign({ hash, privateKey: key, to: "hex" }) };
  return (await request(pathOf(linkAddress), { body })).json();
}

function Taken({ ownerAddress, vaults }: TakenClaimLink) {
  return (
    <>
      <ui.Notice>
        The token is minted. It is on layer 2, and only its owner can withdraw it.
      </ui.Notice>
      <ui.Facts of={[["Owner", ui.code(ownerAddress)]]} />
      <ul>
        {vaults.map(({ vaultId, tokenId }) => (
          <li key={vaultId}>
            <a href={`/explorer#/vaults/${vaultId}`}>
              {tokenId === null ? "See its proof" : `Token ${tokenId}`}
            </a>
          </li>
        ))}
      </ul>
      <p>
        <a href="/explorer#/owner">My tokens</a> shows all that you own here.
      </p>
    </>
  );
}

ui.show(<App />);
