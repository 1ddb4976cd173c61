import type { Drop, PersonSignIn } from "../../client/index.ts";
import { call, withQuery } from "./api.ts";
import { actions, type Column, download, Form, Input, List, Shown, Status, type Texts, Title, When } from "./parts.tsx";
import { AssetChoice, ModeChoice, useEnabledAssets } from "./tokens.tsx";

/** Mints the rows of a file, with progress. A drop that has stopped goes on when the same file is chosen again. */
export function Drops({ signIn }: { signIn: PersonSignIn }) {
  const assets = useEnabledAssets();
  const canMint = signIn.rights.includes("mint");
  const upload = async (texts: Texts, fields: FormData) => {
    const file = fields.get("file") as File;
    const type = /\.(?:ndjson|jsonl)$/.test(file.name) ? "application/x-ndjson" : "text/csv";
    await call("POST", withQuery("/api/v1/drops", texts), file, type);
  };
  const stop = ({ dropId }: Drop) => call("DELETE", `/api/v1/drops/${dropId}`);
  const result = async ({ dropId }: Drop) => {
    const lines = await call<string>("GET", `/api/v1/drops/${dropId}/result`);
    download(`${dropId}.ndjson`, new Blob([lines], { type: "application/x-ndjson" }));
  };
  const done = ({ minted, mintable, refused, unknown }: Drop) => minted + mintable + refused + unknown;
  const columns: Column<Drop>[] = [
    ["When", ({ createdAt }) => <When at={createdAt} />],
    ["Status", ({ status, dryRun }) => <Status of={dryRun ? `${status}, dry run` : status} />],
    [
      "Progress",
      (drop) => (
        <>
          <progress value={done(drop)} max={drop.rows} aria-label={`${done(drop)} of ${drop.rows} rows`} />
          <br />
          {`${done(drop).toLocaleString()} of ${drop.rows.toLocaleString()} rows`}
        </>
      ),
    ],
    ["Minted", ({ minted, mintable }) => (minted + mintable).toLocaleString(), "number"],
    ["Refused", ({ refused }) => refused.toLocaleString(), "number"],
    ["Failure", ({ failure }) => failure?.detail ?? "–"],
    actions((drop) => {
      const canStop = canMint && (drop.status === "running" || drop.status === "queued");
      return [["Result", () => result(drop)], ...(canStop ? [["Stop", () => stop(drop)] as const] : [])];
    }),
  ];
  return (
    <>
      <Title lead="Mint the rows of a CSV or NDJSON file, up to a million. A row has ownerAddress and tokenId, or amount in whole tokens.">
        Drops
      </Title>
      {canMint && (
        <Shown of={assets}>
          {({ data }) => (
            <Form label="New drop" action="Upload and mint" send={upload}>
              <Input label="File" name="file" type="file" required accept=".csv,.ndjson,.jsonl" />
              <AssetChoice assets={data} />
              <ModeChoice />
              <fieldset>
                <legend>Try it first</legend>
                <label>
                  <input type="checkbox" name="dryRun" value="true" /> check every row and mint nothing
                </label>
              </fieldset>
            </Form>
          )}
        </Shown>
      )}
      <p class="quiet">A drop that was stopped, or has failed, goes on when you upload the same file again.</p>
      <List idOf={({ dropId }) => dropId} label="Drops" path="/api/v1/drops" columns={columns} />
    </>
  );
}
