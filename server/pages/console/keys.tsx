import { useState } from "preact/hooks";
import type { ApiKey, IssuedApiKey, PersonSignIn } from "../../client/index.ts";
import { grouped } from "../shared/format.ts";
import { call } from "./api.ts";
import { actions, type Column, Form, Id, Input, List, Secret, type Texts, Title, WHOLE, When } from "./parts.tsx";

const SCOPES = {
  mint: "mint",
  read: "read",
  users: "create users",
  assets: "enable assets",
  withdraw: "withdraw",
  webhooks: "webhooks",
  transfer: "transfer",
} as const;

export function Keys({ signIn }: { signIn: PersonSignIn }) {
  const [issued, show] = useState<IssuedApiKey | null>(null);
  const rights: readonly string[] = signIn.rights;
  const canIssue = rights.includes("keys");
  const scopes = Object.entries(SCOPES).filter(
    ([scope]) => signIn.person.role === "operator" || rights.includes(scope),
  );
  const issue = async ({ name, mintQuota }: Texts, fields: FormData) =>
    show(await call("POST", "/console/v1/keys", { name, mintQuota, scopes: fields.getAll("scope") }));
  const rotate = async ({ keyId }: ApiKey) => show(await call("POST", `/console/v1/keys/${keyId}/rotation`, {}));
  const revoke = ({ keyId }: ApiKey) => call("DELETE", `/console/v1/keys/${keyId}`);
  const columns: Column<ApiKey>[] = [
    ["Name", (key) => <span class={key.revokedAt === null ? "" : "gone"}>{key.name ?? "–"}</span>],
    ["Id", ({ keyId }) => <Id of={keyId} />],
    ["Scopes", (key) => key.scopes.join(", ")],
    [
      "Mints",
      (key) =>
        key.mintQuota === null ? grouped(key.mintsUsed) : `${grouped(key.mintsUsed)} of ${grouped(key.mintQuota)}`,
      "number",
    ],
    ["Created", ({ createdAt }) => <When at={createdAt} />],
    ["Revoked", ({ revokedAt }) => <When at={revokedAt} />],
    actions((key) => {
      const { name, keyId, revokedAt } = key;
      const question = `Revoke ${name ?? keyId}? Programs that use it stop at once.`;
      if (!canIssue || revokedAt !== null) return [];
      return [
        ["Rotate", () => rotate(key)],
        ["Revoke", () => revoke(key), question],
      ];
    }),
  ];
  return (
    <>
      <Title lead="Programs mint with a key. To rotate: create a key, switch your programs to it, then revoke the old one.">
        API keys
      </Title>
      {issued && (
        <Secret
          title={`Key ${issued.key.name ?? issued.key.keyId}.`}
          secret={issued.secret}
          onDone={() => show(null)}
        />
      )}
      {canIssue && (
        <Form label="New key" action="Create key" send={issue}>
          <Input label="Name" name="name" required maxLength={100} />
          <Input label="Most mints (empty: no limit)" name="mintQuota" pattern="\d{1,19}" {...WHOLE} />
          <fieldset>
            <legend>It may</legend>
            <div>
              {scopes.map(([scope, text]) => (
                <label key={scope}>
                  <input
                    type="checkbox"
                    name="scope"
                    value={scope}
                    defaultChecked={scope === "mint" || scope === "read"}
                  />
                  {text}
                </label>
              ))}
            </div>
          </fieldset>
        </Form>
      )}
      <List idOf={({ keyId }) => keyId} label="API keys" path="/console/v1/keys" columns={columns} />
    </>
  );
}
