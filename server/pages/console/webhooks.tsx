import { useState } from "preact/hooks";
import type { IssuedWebhook, Webhook, WebhookAttempt } from "../../client/index.ts";
import { call } from "./api.ts";
import { actions, type Column, Form, Input, List, Secret, Status, type Texts, Title, When } from "./parts.tsx";

const PATH = "/api/v1/webhooks";

export function Webhooks() {
  const [issued, setIssued] = useState<IssuedWebhook | null>(null);
  const [chosen, setChosen] = useState<Webhook | null>(null);
  const act = (method: string, path: string) => () => call(method, PATH + path);
  const create = async (webhook: Texts) => setIssued(await call("POST", PATH, webhook));
  const rotate = async ({ webhookId }: Webhook) => setIssued(await call("POST", `${PATH}/${webhookId}/secret`));
  const columns: Column<Webhook>[] = [
    ["Address", ({ url }) => url],
    ["Status", ({ status, failingSince }) => <Status of={failingSince === null ? status : `${status}, failing`} />],
    ["Delivered up to", ({ delivered }) => delivered.toLocaleString(), "number"],
    ["Last failure", ({ failure }) => failure ?? "–"],
    actions((webhook) => [
      ["Deliveries", () => setChosen(webhook)],
      ["Test", act("POST", `/${webhook.webhookId}/test`)],
      ["Deliver now", act("PUT", `/${webhook.webhookId}/enablement`)],
      ["New secret", () => rotate(webhook)],
      ["Delete", act("DELETE", `/${webhook.webhookId}`), `Delete ${webhook.url}?`],
    ]),
  ];
  return (
    <>
      <Title lead="Events are posted to these addresses, in order, signed, until they are taken.">Webhooks</Title>
      {issued && (
        <Secret title={`Signing secret of ${issued.url}.`} secret={issued.secret} onDone={() => setIssued(null)} />
      )}
      <Form label="New webhook" action="Add webhook" send={create}>
        <Input label="Address" name="url" type="url" required placeholder="https://" />
      </Form>
      <List idOf={({ webhookId }) => webhookId} label="Webhooks" path={PATH} columns={columns} />
      {chosen !== null && <Deliveries of={chosen} />}
    </>
  );
}

function Deliveries({ of: { webhookId, url } }: { of: Webhook }) {
  const redeliver = ({ sequence }: WebhookAttempt) =>
    call("POST", `${PATH}/${webhookId}/deliveries/${sequence}/redeliver`);
  const columns: Column<WebhookAttempt>[] = [
    ["When", ({ time }) => <When at={time} />],
    ["Kind", ({ kind }) => kind],
    ["Event", ({ sequence }) => sequence ?? "–", "number"],
    ["Status", ({ status }) => status ?? "–", "number"],
    ["Took ms", ({ durationMs }) => durationMs.toLocaleString(), "number"],
    ["Failure", ({ failure }) => failure ?? "–"],
    actions((attempt) => attempt.sequence !== null && [["Deliver again", () => redeliver(attempt)]]),
  ];
  return (
    <>
      <h2>Deliveries to {url}</h2>
      <List
        label="Deliveries"
        path={`${PATH}/${webhookId}/deliveries`}
        columns={columns}
        empty="None since the server started."
      />
    </>
  );
}
