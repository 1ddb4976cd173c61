import { useState } from "preact/hooks";
import type { Asset, MemberSession, Transaction, Usage, User, Vault, Withdrawal } from "../../client/index.ts";
import { call, type Listed } from "./api.ts";
import { Chart } from "./chart.tsx";
import {
  Action,
  type Column,
  Field,
  Form,
  Id,
  List,
  Shown,
  Status,
  StatusChoice,
  Title,
  textOf,
  useLoad,
  When,
} from "./parts.tsx";

/** A list with every enabled asset for a form. */
function useAssets() {
  return useLoad(() => call<Listed<Asset>>("GET", "/api/v1/assets?enabled=true&limit=100"), "assets");
}

function AssetChoice({ assets }: { assets: readonly Asset[] }) {
  return (
    <Field label="Asset">
      <select name="assetId">
        {assets.map(({ assetId, name, standard }) => (
          <option key={assetId} value={assetId}>
            {`${name} (${standard})`}
          </option>
        ))}
      </select>
    </Field>
  );
}

function ModeChoice() {
  return (
    <Field label="Data">
      <select name="mode">
        <option value="validium">validium: with the committee</option>
        <option value="zk-rollup">zk-rollup: on L1</option>
      </select>
    </Field>
  );
}

/** An amount of a token as its owner's wallet shows it. */
export function wholeTokens({
  amount,
  quantum,
  decimals,
}: Pick<Transaction, "amount" | "quantum" | "decimals">): string {
  if (decimals === 0) return amount;
  const digits = (BigInt(amount) * BigInt(quantum)).toString().padStart(decimals + 1, "0");
  const fraction = digits.slice(-decimals).replace(/0+$/, "");
  return `${digits.slice(0, -decimals)}${fraction && `.${fraction}`}`;
}

export function Overview() {
  const usage = useLoad(() => call<Usage>("GET", "/api/v1/usage"), "usage", 5_000);
  return (
    <>
      <Title>Overview</Title>
      <Shown of={usage}>
        {({ mints, transactions, periods, keys }) => (
          <>
            <div class="cards">
              {[
                ["Mints", mints],
                ["Transactions", transactions.toLocaleString()],
                ["Keys and members in use", String(keys.filter(({ revokedAt }) => revokedAt === null).length)],
              ].map(([name, figure]) => (
                <section class="card" key={name}>
                  <h2>{name}</h2>
                  <p class="figure">{figure}</p>
                </section>
              ))}
            </div>
            <h2>The last 30 days</h2>
            <Chart
              label="Transactions a day"
              points={periods.map(({ since, transactions: value }) => ({ at: Date.parse(since) / 1000, value }))}
            />
          </>
        )}
      </Shown>
      <h2>Newest transactions</h2>
      <List label="Newest transactions" path="/api/v1/transactions?limit=10" columns={TRANSACTIONS} />
    </>
  );
}

const TRANSACTIONS: readonly Column<Transaction>[] = [
  ["When", ({ timestamps }) => <When at={timestamps.accepted ?? null} />],
  ["Type", ({ type }) => type],
  ["Status", ({ status }) => <Status of={status} />],
  // A transfer of 0 is one of all that is left.
  ["Amount", (one) => (one.type === "transfer" && one.amount === "0" ? "all" : wholeTokens(one)), "number"],
  ["User", ({ userId }) => <Id of={userId} />],
  ["Vault", ({ vaultId }) => vaultId],
  ["Reference", ({ reference }) => reference ?? "–"],
  ["Failure", ({ failure }) => failure ?? "–"],
];

export function Transactions() {
  const [status, setStatus] = useState("");
  return (
    <>
      <Title>Transactions</Title>
      <StatusChoice value={status} onChoose={setStatus} />
      <List label="Transactions" path={`/api/v1/transactions${status && `?status=${status}`}`} columns={TRANSACTIONS} />
    </>
  );
}

/** What a token's issuer says of it. Anybody could have written it. */
interface Metadata {
  readonly name?: unknown;
  readonly image?: unknown;
}

function readMetadata(assetId: string, tokenId: string): Promise<Metadata> {
  return call<Metadata>("GET", `/public/v1/metadata/${assetId}/${tokenId}`);
}

/** The name and the image of a token; nothing for a token without metadata. */
function Named({ assetId, tokenId }: { assetId: string; tokenId: string }) {
  const { value } = useLoad(() => readMetadata(assetId, tokenId), `${assetId} ${tokenId}`);
  const name = typeof value?.name === "string" ? value.name : `Token ${tokenId}`;
  const image = typeof value?.image === "string" && /^(?:https:|data:image\/)/.test(value.image) ? value.image : null;
  return (
    <>
      {value && <bdi>{` ${name}`}</bdi>}
      {image && (
        <img class="token" src={image} alt={name} width={64} height={64} loading="lazy" referrerpolicy="no-referrer" />
      )}
    </>
  );
}

const vaultColumns = (assets: readonly Asset[], isNamed: boolean): readonly Column<Vault>[] => [
  ["Vault", ({ vaultId }) => <a href={`/explorer#/vaults/${vaultId}`}>{vaultId}</a>],
  ["Status", ({ status }) => <Status of={status} />],
  ["Asset", ({ assetId }) => <bdi>{assets.find((asset) => asset.assetId === assetId)?.name ?? "–"}</bdi>],
  [
    "Token",
    ({ assetId, tokenId }) => (
      <>
        {tokenId ?? "fungible"}
        {isNamed && tokenId !== null && <Named key={`${assetId} ${tokenId}`} assetId={assetId} tokenId={tokenId} />}
      </>
    ),
  ],
  ["Amount", wholeTokens, "number"],
  ["Left", (vault) => wholeTokens({ ...vault, amount: vault.availableBalance }), "number"],
  ["Owner", ({ ownerAddress }) => <Id of={ownerAddress} />],
  ["Batch", ({ batchId }) => batchId],
];

export function Vaults() {
  const [owner, setOwner] = useState("");
  const [isNamed, setNamed] = useState(false);
  const assets = useLoad(() => call<Listed<Asset>>("GET", "/api/v1/assets?limit=100"), "assets");
  return (
    <>
      <Title>Vaults</Title>
      <Form label="Find vaults" action="Find" send={async (fields) => setOwner(textOf(fields, "owner") ?? "")}>
        <Field label="Owner (empty: all)">
          <input name="owner" placeholder="0x…" pattern="0x[0-9a-fA-F]{40}" autocomplete="off" />
        </Field>
      </Form>
      <p class="quiet">
        <button type="button" aria-pressed={isNamed} onClick={() => setNamed(!isNamed)}>
          Show names and images
        </button>{" "}
        The hosts of the images then learn your address.
      </p>
      <List
        label="Vaults"
        path={`/api/v1/vaults${owner && `?ownerAddress=${owner}`}`}
        columns={vaultColumns(assets.value?.data ?? [], isNamed)}
      />
    </>
  );
}

const WITHDRAWALS: readonly Column<Withdrawal>[] = [
  ["When", ({ createdAt }) => <When at={createdAt} />],
  ["Status", ({ status }) => <Status of={status} />],
  ["Vault", ({ vaultId }) => vaultId],
  ["Units", ({ quantity }) => quantity, "number"],
  ["Recipient", ({ recipient }) => <Id of={recipient} />],
  ["L1 transaction", ({ l1TxHash }) => <Id of={l1TxHash} />],
  ["Waits or failed for", ({ failure }) => failure ?? "–"],
];

export function Withdrawals() {
  return (
    <>
      <Title lead="An owner signs a withdrawal with its wallet, in your application or in the explorer.">
        Withdrawals
      </Title>
      <List label="Withdrawals" path="/api/v1/withdrawals" columns={WITHDRAWALS} />
    </>
  );
}

export function Users({ session }: { session: MemberSession }) {
  const [version, setVersion] = useState(0);
  const columns: Column<User>[] = [
    ["Reference", ({ reference }) => reference ?? "–"],
    ["Owner", ({ ownerAddress }) => <code>{ownerAddress}</code>],
    ["User", ({ userId }) => <Id of={userId} />],
    ["Created", ({ createdAt }) => <When at={createdAt} />],
  ];
  const create = async (fields: FormData) => {
    const body = { ownerAddress: textOf(fields, "owner"), reference: textOf(fields, "reference") };
    await call("POST", "/api/v1/users", body);
    setVersion(version + 1);
  };
  return (
    <>
      <Title lead="A user is an address on L1 that owns what you mint for it. Your own name for it is its reference.">
        Users
      </Title>
      {session.rights.includes("users") && (
        <Form label="New user" action="Create user" send={create}>
          <Field label="Owner's address">
            <input name="owner" required placeholder="0x…" pattern="0x[0-9a-fA-F]{40}" autocomplete="off" />
          </Field>
          <Field label="Reference (your own name)">
            <input name="reference" maxLength={64} autocomplete="off" />
          </Field>
        </Form>
      )}
      <List label="Users" path="/api/v1/users" columns={columns} version={version} />
    </>
  );
}

export function Assets({ session }: { session: MemberSession }) {
  const [version, setVersion] = useState(0);
  const canEnable = session.rights.includes("assets");
  const enable = async ({ assetId, enabled }: Asset) => {
    await call(enabled ? "DELETE" : "PUT", `/api/v1/assets/${assetId}/enablement`);
    setVersion(version + 1);
  };
  const columns: Column<Asset>[] = [
    ["Name", ({ name, symbol }) => `${name} (${symbol})`],
    ["Standard", ({ standard }) => standard],
    ["Contract", ({ contractAddress }) => <Id of={contractAddress} />],
    ["Minted units", ({ minted, supplyCap }) => (supplyCap === null ? minted : `${minted} of ${supplyCap}`), "number"],
    ["Can be minted", ({ mintingAvailable, unavailableReason }) => (mintingAvailable ? "yes" : unavailableReason)],
    ["Transferable", ({ transferable }) => (transferable === null ? "not known yet" : transferable ? "yes" : "no")],
    ["Enabled", (asset) => (asset.enabled ? "yes" : "no")],
    [
      "Actions",
      (asset) => canEnable && <Action work={() => enable(asset)}>{asset.enabled ? "Disable" : "Enable"}</Action>,
    ],
  ];
  return (
    <>
      <Title lead="The operator adds token contracts. Your application mints those that it has enabled.">Assets</Title>
      <List label="Assets" path="/api/v1/assets" columns={columns} version={version} />
    </>
  );
}

export function Mint() {
  const assets = useAssets();
  const [minted, setMinted] = useState<string | null>(null);
  const send = async (fields: FormData, all: readonly Asset[]) => {
    setMinted(null);
    const assetId = textOf(fields, "assetId");
    const standard = all.find((asset) => asset.assetId === assetId)?.standard;
    const amount = textOf(fields, "amount");
    const mint = {
      assetId,
      dataAvailabilityMode: textOf(fields, "mode"),
      ...(standard === "erc20"
        ? { amountDecimal: amount }
        : { tokenId: textOf(fields, "tokenId"), amount: amount ?? "1" }),
      reference: textOf(fields, "reference"),
    };
    const body = { users: [{ ownerAddress: textOf(fields, "owner"), mints: [mint] }] };
    const { vaults } = await call<{ vaults: readonly Vault[] }>("POST", "/api/v1/mint", body);
    setMinted(vaults.map(({ vaultId }) => vaultId).join(", "));
  };
  return (
    <>
      <Title lead="One token, or an amount of one, for an owner. A mint cannot be undone.">Mint by hand</Title>
      <Shown of={assets}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="notice">Enable an asset first.</p>
          ) : (
            <Form label="Mint" action="Mint" send={(fields) => send(fields, data)}>
              <AssetChoice assets={data} />
              <Field label="Owner's address">
                <input name="owner" required placeholder="0x…" pattern="0x[0-9a-fA-F]{40}" autocomplete="off" />
              </Field>
              <Field label="Token id (not for ERC-20)">
                <input name="tokenId" inputMode="numeric" pattern="\d{1,78}" autocomplete="off" />
              </Field>
              <Field label="Amount (ERC-20: whole tokens)">
                <input name="amount" inputMode="decimal" pattern="\d+(\.\d+)?" autocomplete="off" />
              </Field>
              <ModeChoice />
              <Field label="Reference (your own name)">
                <input name="reference" maxLength={64} autocomplete="off" />
              </Field>
            </Form>
          )
        }
      </Shown>
      {minted !== null && (
        <p class="notice" role="status">
          Minted: vault {minted}. It is on disk, and goes to L1 with its batch.
        </p>
      )}
      <List label="Newest transactions" path="/api/v1/transactions?limit=10" columns={TRANSACTIONS} />
    </>
  );
}

export { AssetChoice, ModeChoice, useAssets };
