import { useState } from "preact/hooks";
import type {
  ApiKey,
  IssuedApiKey,
  IssuedWebhook,
  PersonSignIn,
  Webhook,
  WebhookAttempt,
} from "../../client/index.ts";
import { grouped } from "../shared/format.ts";
import { call } from "./api.ts";
import * as ui from "./parts.tsx";

// An application's programs have keys and webhooks.

const SCOPES = {
  mint: "mint",
  read: "read",
  users: "create users",
  assets: "enable assets",
  withdraw: "withdraw",
  webhooks: "webhooks",
  transfer: "transfer",
} as const;

const USUAL: readonly string[] = ["mint", "read"];

export function Keys({ signIn }: { signIn: PersonSignIn }) {
  const [issued, show] = useState<IssuedApiKey | null>(null);
  const rights: readonly string[] = signIn.rights;
  const canIssue = rights.includes("keys");
  const scopes = Object.entries(SCOPES).filter(
    ([scope]) => signIn.person.role === "operator" || rights.includes(scope),
  );
  const issue = async ({ name, mintQuota }: ui.Texts, fields: FormData) =>
    show(
      await call("POST", "/console/v1/keys", { name, mintQuota, scopes: fields.getAll("scope") }),
    );
  const rotate = async ({ keyId }: ApiKey) =>
    show(await call("POST", `/console/v1/keys/${keyId}/rotation`, {}));
  const revoke = ({ keyId }: ApiKey) => call("DELETE", `/console/v1/keys/${keyId}`);
  const columns: ui.Column<ApiKey>[] = [
    ["Name", (key) => <span class={key.revokedAt === null ? "" : "gone"}>{key.name ?? "–"}</span>],
    ["Id", ({ keyId }) => <ui.Id of={keyId} />],
    ["Scopes", (key) => key.scopes.join(", ")],
    [
      "Mints",
      ({ mintsUsed, mintQuota: most }) => grouped(mintsUsed) + (most ? ` of ${grouped(most)}` : ""),
      "number",
    ],
    ["Created", ({ createdAt }) => <ui.When at={createdAt} />],
    ["Revoked", ({ revokedAt }) => <ui.When at={revokedAt} />],
    ui.actions((key) => {
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
      {issued && (
        <ui.Secret
          title={`Key ${issued.key.name ?? issued.key.keyId}.`}
          secret={issued.secret}
          onDone={() => show(null)}
        />
      )}
      {canIssue && (
        <ui.Form label="New key" action="Create key" send={issue}>
          <ui.Input label="Name" name="name" required maxLength={100} />
          <ui.Input
            label="Most mints (empty: no limit)"
            name="mintQuota"
            pattern="\d{1,19}"
            {...ui.WHOLE}
          />
          <fieldset>
            <legend>It may</legend>
            <div>
              {scopes.map(([scope, text]) => (
                <label key={scope}>
                  <input
                    type="checkbox"
                    name="scope"
                    value={scope}
                    defaultChecked={USUAL.includes(scope)}
                  />
                  {text}
                </label>
              ))}
            </div>
          </fieldset>
        </ui.Form>
      )}
      <ui.List idIn="keyId" label="API keys" path="/console/v1/keys" columns={columns} />
    </>
  );
}

const WEBHOOKS = "/api/v1/webhooks";

export function Webhooks() {
  const [issued, setIssued] = useState<IssuedWebhook | null>(null);
  const [chosen, setChosen] = useState<Webhook | null>(null);
  const act = (method: string, path: string) => () => call(method, WEBHOOKS + path);
  const create = async (webhook: ui.Texts) => setIssued(await call("POST", WEBHOOKS, webhook));
  const rotate = async ({ webhookId }: Webhook) =>
    setIssued(await call("POST", `${WEBHOOKS}/${webhookId}/secret`));
  const columns: ui.Column<Webhook>[] = [
    ["Address", ({ url }) => url],
    [
      "Status",
      ({ status, failingSince }) => (
        <ui.Status of={failingSince === null ? status : `${status}, failing`} />
      ),
    ],
    ["Delivered up to", ({ delivered }) => delivered.toLocaleString(), "number"],
    ["Last failure", ({ failure }) => failure ?? "–"],
    ui.actions((webhook) => [
      ["Deliveries", () => setChosen(webhook)],
      ["Test", act("POST", `/${webhook.webhookId}/test`)],
      ["Deliver now", act("PUT", `/${webhook.webhookId}/enablement`)],
      ["New secret", () => rotate(webhook)],
      ["Delete", act("DELETE", `/${webhook.webhookId}`), `Delete ${webhook.url}?`],
    ]),
  ];
  return (
    <>
      {issued && (
        <ui.Secret
          title={`Signing secret of ${issued.url}.`}
          secret={issued.secret}
          onDone={() => setIssued(null)}
        />
      )}
      <ui.Form label="New webhook" action="Add webhook" send={create}>
        <ui.Input label="Address" name="url" type="url" required placeholder="https://" />
      </ui.Form>
      <ui.List idIn="webhookId" label="Webhooks" path={WEBHOOKS} columns={columns} />
      {chosen !== null && <Deliveries of={chosen} />}
    </>
  );
}

const SKIPPED = "The event is never delivered here. The webhook goes on with the next one.";

function Deliveries({ of: { webhookId, url } }: { of: Webhook }) {
  const skip = ({ sequence }: WebhookAttempt) =>
    call("POST", `${WEBHOOKS}/${webhookId}/deliveries/${sequence}/skip`);
  const redeliver = ({ sequence }: WebhookAttempt) =>
    call("POST", `${WEBHOOKS}/${webhookId}/deliveries/${sequence}/redeliver`);
  const columns: ui.Column<WebhookAttempt>[] = [
    ["When", ({ time }) => <ui.When at={time} />],
    ["Kind", ({ kind }) => kind],
    ["Event", ({ sequence }) => sequence ?? "–", "number"],
    ["Status", ({ status }) => status ?? "–", "number"],
    ["Took ms", ({ durationMs }) => durationMs.toLocaleString(), "number"],
    ["Failure", ({ failure }) => failure ?? "–"],
    ui.actions(
      (attempt) =>
        attempt.sequence !== null && [
          ["Deliver again", () => redeliver(attempt)],
          ["Skip", () => skip(attempt), SKIPPED],
        ],
    ),
  ];
  return (
    <>
      <h2>Deliveries to {url}</h2>
      <ui.List
        label="Deliveries"
        path={`${WEBHOOKS}/${webhookId}/deliveries`}
        columns={columns}
        empty="None since the server started."
      />
    </>
  );
}
