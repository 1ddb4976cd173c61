import { useState } from "preact/hooks";
import type { Asset, Drop, PersonSignIn, Usage, User, Vault } from "../../client/index.ts";
import { grouped } from "../shared/format.ts";
import { call, withQuery } from "./api.ts";
import { Chart } from "./chart.tsx";
import { NewToken } from "./new-token.tsx";
import * as ui from "./parts.tsx";
import { AssetChoice, ModeChoice, useEnabledAssets, wholeTokens } from "./tokens.tsx";
import { COLUMNS } from "./transactions.tsx";

export function Overview() {
  return (
    <>
      <ui.Live<Usage> path="/api/v1/usage">
        {({ mints, transactions, periods, keysInUse }) => (
          <>
            <div class="cards">
              {[
                ["Mints", grouped(mints)],
                ["Transactions", transactions.toLocaleString("en")],
                ["Keys and people in use", keysInUse.toLocaleString("en")],
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
              points={periods.map(({ since, transactions: value }) => ({
                at: Date.parse(since) / 1000,
                value,
              }))}
            />
          </>
        )}
      </ui.Live>
      <h2>Newest transactions</h2>
      <ui.List label="Newest transactions" path="/api/v1/transactions?limit=10" columns={COLUMNS} />
    </>
  );
}

export function Users({ signIn }: { signIn: PersonSignIn }) {
  const columns: ui.Column<User>[] = [
    ["Reference", ({ reference }) => reference ?? "–"],
    ["Owner", ({ ownerAddress }) => <ui.To page="users" id={ownerAddress} />],
    ["User", ({ userId }) => <ui.To page="users" id={userId} />],
    ["Created", ({ createdAt }) => <ui.When at={createdAt} />],
  ];
  return (
    <>
      {signIn.rights.includes("users") && (
        <ui.Form
          label="New user"
          action="Create user"
          send={(user) => call("POST", "/api/v1/users", user)}
        >
          <ui.Input label="Owner's address" name="ownerAddress" required {...ui.ADDRESS} />
          <ui.Input label="Reference (your own name)" name="reference" maxLength={64} />
        </ui.Form>
      )}
      <ui.List label="Users" path="/api/v1/users?order=desc" columns={columns} />
    </>
  );
}

export function mintedOf(asset: Asset): string {
  const { minted, supplyCap } = asset;
  const whole = (amount: string) => wholeTokens({ ...asset, amount });
  return supplyCap === null ? whole(minted) : `${whole(minted)} of ${whole(supplyCap)}`;
}

export function Assets({ signIn }: { signIn: PersonSignIn }) {
  const canEnable = signIn.rights.includes("assets");
  const enable = ({ assetId, enabled }: Asset) =>
    call(enabled ? "DELETE" : "PUT", `/api/v1/assets/${assetId}/enablement`);
  const columns: ui.Column<Asset>[] = [
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
    ["Contract", ({ contractAddress }) => <ui.Id of={contractAddress} />],
    ["Minted", (asset) => mintedOf(asset), "number"],
    [
      "Can be minted",
      ({ mintingAvailable, unavailableReason }) => (mintingAvailable ? "yes" : unavailableReason),
    ],
    [
      "Transferable",
      ({ transferable }) => (transferable === null ? "not known yet" : transferable ? "yes" : "no"),
    ],
    [
      "Enabled",
      (asset) => (
        <span class="actions">
          {asset.enabled ? "yes" : "no"}
          {canEnable && (
            <ui.Action text={asset.enabled ? "Disable" : "Enable"} work={() => enable(asset)} />
          )}
        </span>
      ),
    ],
  ];
  return (
    <>
      <ui.List idIn="assetId" label="Assets" path="/api/v1/assets" columns={columns} />
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
  const send = async ({ ownerAddress, ...mint }: ui.Texts) => {
    setMinted([]);
    const body = { users: [{ ownerAddress, mints: [{ amountDecimal: "1", ...mint }] }] };
    const { vaults } = await call<{ vaults: readonly Vault[] }>("POST", "/api/v1/mint", body);
    setMinted(vaults);
  };
  return (
    <>
      <ui.Shown of={assets}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="notice">Enable an asset first.</p>
          ) : (
            <ui.Form label="Mint" action="Mint" send={send}>
              <AssetChoice assets={data} onChoose={setChosen} />
              <ui.Input label="Owner's address" name="ownerAddress" required {...ui.ADDRESS} />
              {!isFungible(data) && (
                <ui.Input
                  label="Token id"
                  name="tokenId"
                  required
                  pattern="\d{1,78}"
                  {...ui.WHOLE}
                />
              )}
              <ui.Input
                label="Amount in whole tokens"
                name="amountDecimal"
                required={isFungible(data)}
                inputMode="decimal"
                pattern="\d+(\.\d+)?"
                title="Digits without commas, such as 1000.5"
              />
              <ModeChoice />
              <ui.Input label="Reference (your own name)" name="reference" maxLength={64} />
            </ui.Form>
          )
        }
      </ui.Shown>
      {minted.map((vault) => (
        <p class="notice" role="status" key={vault.vaultId}>
          Minted: vault <ui.To page="vaults" id={vault.vaultId} />. It is on disk, and goes to L1
          with its batch.
        </p>
      ))}
      <ui.List label="Newest transactions" path="/api/v1/transactions?limit=10" columns={COLUMNS} />
    </>
  );
}

/**
 * Mints the rows of a file, with progress. A drop that has stopped goes on when the same file is
 * chosen again.
 */
export function Drops({ signIn }: { signIn: PersonSignIn }) {
  const assets = useEnabledAssets();
  const canMint = signIn.rights.includes("mint");
  const upload = async (texts: ui.Texts, fields: FormData) => {
    const file = fields.get("file") as File;
    const type = /\.(?:ndjson|jsonl)$/.test(file.name) ? "application/x-ndjson" : "text/csv";
    await call("POST", withQuery("/api/v1/drops", texts), file, type);
  };
  const stop = ({ dropId }: Drop) => call("DELETE", `/api/v1/drops/${dropId}`);
  const result = async ({ dropId }: Drop) => {
    const lines = await call<string>("GET", `/api/v1/drops/${dropId}/result`);
    ui.download(`${dropId}.ndjson`, new Blob([lines], { type: "application/x-ndjson" }));
  };
  const done = ({ minted, mintable, refused, unknown }: Drop) =>
    minted + mintable + refused + unknown;
  const columns: ui.Column<Drop>[] = [
    ["When", ({ createdAt }) => <ui.When at={createdAt} />],
    ["Status", ({ status, dryRun }) => <ui.Status of={dryRun ? `${status}, dry run` : status} />],
    [
      "Progress",
      (drop) => (
        <>
          <progress
            value={done(drop)}
            max={drop.rows}
            aria-label={`${done(drop)} of ${drop.rows} rows`}
          />
          <br />
          {`${done(drop).toLocaleString()} of ${drop.rows.toLocaleString()} rows`}
        </>
      ),
    ],
    ["Minted", ({ minted, mintable }) => (minted + mintable).toLocaleString(), "number"],
    ["Refused", ({ refused }) => refused.toLocaleString(), "number"],
    ["Failure", ({ failure }) => failure?.detail ?? "–"],
    ui.actions((drop) => {
      const canStop = canMint && (drop.status === "running" || drop.status === "queued");
      return [
        ["Result", () => result(drop)],
        ...(canStop ? [["Stop", () => stop(drop)] as const] : []),
      ];
    }),
  ];
  return (
    <>
      {canMint && (
        <ui.Shown of={assets}>
          {({ data }) => (
            <ui.Form label="New drop" action="Upload and mint" send={upload}>
              <ui.Input
                label="File"
                name="file"
                type="file"
                required
                accept=".csv,.ndjson,.jsonl"
              />
              <AssetChoice assets={data} />
              <ModeChoice />
              <fieldset>
                <legend>Try it first</legend>
                <label>
                  <input type="checkbox" name="dryRun" value="true" /> check every row and mint
                  nothing
                </label>
              </fieldset>
            </ui.Form>
          )}
        </ui.Shown>
      )}
      <p class="quiet">
        A drop that was stopped, or has failed, goes on when you upload the same file again.
      </p>
      <ui.List idIn="dropId" label="Drops" path="/api/v1/drops" columns={columns} />
    </>
  );
}
