import { useState } from "preact/hooks";
import type { Asset, PersonSignIn, Usage, User, Vault } from "../../client/index.ts";
import { grouped } from "../shared/format.ts";
import { call } from "./api.ts";
import { Chart } from "./chart.tsx";
import { NewToken } from "./new-token.tsx";
import {
  Action,
  ADDRESS,
  type Column,
  Form,
  Id,
  Input,
  List,
  Live,
  Shown,
  Title,
  To,
  textOf,
  WHOLE,
  When,
} from "./parts.tsx";
import { AssetChoice, ModeChoice, useEnabledAssets, wholeTokens } from "./tokens.tsx";
import { COLUMNS } from "./transactions.tsx";

export function Overview() {
  return (
    <>
      <Title>Overview</Title>
      <Live<Usage> path="/api/v1/usage">
        {({ mints, transactions, periods, keys }) => (
          <>
            <div class="cards">
              {[
                ["Mints", grouped(mints)],
                ["Transactions", transactions.toLocaleString("en")],
                [
                  "Keys and people in use",
                  keys.filter(({ revokedAt }) => revokedAt === null).length.toLocaleString("en"),
                ],
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
      </Live>
      <h2>Newest transactions</h2>
      <List label="Newest transactions" path="/api/v1/transactions?limit=10" columns={COLUMNS} />
    </>
  );
}

export function Users({ signIn }: { signIn: PersonSignIn }) {
  const columns: Column<User>[] = [
    ["Reference", ({ reference }) => reference ?? "–"],
    ["Owner", ({ ownerAddress }) => <To page="users" id={ownerAddress} />],
    ["User", ({ userId }) => <To page="users" id={userId} />],
    ["Created", ({ createdAt }) => <When at={createdAt} />],
  ];
  const create = (fields: FormData) =>
    call("POST", "/api/v1/users", { ownerAddress: textOf(fields, "owner"), reference: textOf(fields, "reference") });
  return (
    <>
      <Title lead="A user is an address on L1 that owns what you mint for it. Your own name for it is its reference.">
        Users
      </Title>
      {signIn.rights.includes("users") && (
        <Form label="New user" action="Create user" send={create}>
          <Input label="Owner's address" name="owner" required {...ADDRESS} />
          <Input label="Reference (your own name)" name="reference" maxLength={64} />
        </Form>
      )}
      <List label="Users" path="/api/v1/users?order=desc" columns={columns} />
    </>
  );
}

/** How much exists of an asset, in whole tokens. */
export function mintedOf(asset: Asset): string {
  const { minted, supplyCap } = asset;
  const whole = (amount: string) => wholeTokens({ ...asset, amount });
  return supplyCap === null ? whole(minted) : `${whole(minted)} of ${whole(supplyCap)}`;
}

export function Assets({ signIn }: { signIn: PersonSignIn }) {
  const canEnable = signIn.rights.includes("assets");
  const enable = ({ assetId, enabled }: Asset) =>
    call(enabled ? "DELETE" : "PUT", `/api/v1/assets/${assetId}/enablement`);
  const columns: Column<Asset>[] = [
    [
      "Name",
      ({ assetId, name, symbol, standard }) => (
        <>
          <a href={`#/assets/${assetId}`}>
            <bdi>{`${name} (${symbol})`}</bdi>
          </a>{" "}
          <span class="quiet">{standard}</span>
        </>
      ),
    ],
    ["Contract", ({ contractAddress }) => <Id of={contractAddress} />],
    ["Minted", (asset) => mintedOf(asset), "number"],
    ["Can be minted", ({ mintingAvailable, unavailableReason }) => (mintingAvailable ? "yes" : unavailableReason)],
    ["Transferable", ({ transferable }) => (transferable === null ? "not known yet" : transferable ? "yes" : "no")],
    [
      "Enabled",
      (asset) => (
        <span class="actions">
          {asset.enabled ? "yes" : "no"}
          {canEnable && <Action work={() => enable(asset)}>{asset.enabled ? "Disable" : "Enable"}</Action>}
        </span>
      ),
    ],
  ];
  return (
    <>
      <Title lead="Token contracts that your application can enable. It mints those that are enabled.">Assets</Title>
      <List idOf={({ assetId }) => assetId} label="Assets" path="/api/v1/assets" columns={columns} />
      {canEnable && <NewToken signIn={signIn} />}
    </>
  );
}

export function Mint() {
  const assets = useEnabledAssets();
  const [chosen, setChosen] = useState<string>();
  const [minted, setMinted] = useState<readonly Vault[]>([]);
  const isFungible = (all: readonly Asset[]) =>
    (all.find(({ assetId }) => assetId === chosen) ?? all[0])?.standard === "erc20";
  const send = async (fields: FormData) => {
    setMinted([]);
    const mint = {
      assetId: textOf(fields, "assetId"),
      dataAvailabilityMode: textOf(fields, "mode"),
      tokenId: textOf(fields, "tokenId"),
      amountDecimal: textOf(fields, "amount") ?? "1",
      reference: textOf(fields, "reference"),
    };
    const body = { users: [{ ownerAddress: textOf(fields, "owner"), mints: [mint] }] };
    const { vaults } = await call<{ vaults: readonly Vault[] }>("POST", "/api/v1/mint", body);
    setMinted(vaults);
  };
  return (
    <>
      <Title lead="One token, or an amount of one, for an owner. A mint cannot be undone.">Mint by hand</Title>
      <Shown of={assets}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="notice">Enable an asset first.</p>
          ) : (
            <Form label="Mint" action="Mint" send={send}>
              <AssetChoice assets={data} onChoose={setChosen} />
              <Input label="Owner's address" name="owner" required {...ADDRESS} />
              {!isFungible(data) && <Input label="Token id" name="tokenId" required pattern="\d{1,78}" {...WHOLE} />}
              <Input
                label="Amount in whole tokens"
                name="amount"
                required={isFungible(data)}
                inputMode="decimal"
                pattern="\d+(\.\d+)?"
                title="Digits without commas, such as 1000.5"
              />
              <ModeChoice />
              <Input label="Reference (your own name)" name="reference" maxLength={64} />
            </Form>
          )
        }
      </Shown>
      {minted.map((vault) => (
        <p class="notice" role="status" key={vault.vaultId}>
          Minted: vault <To page="vaults" id={vault.vaultId} />. It is on disk, and goes to L1 with its batch.
        </p>
      ))}
      <List label="Newest transactions" path="/api/v1/transactions?limit=10" columns={COLUMNS} />
    </>
  );
}
