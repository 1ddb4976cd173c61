import { MintmarkError } from "../../core/index.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { issuedWebhook, webhook, webhookBody, webhookList, webhookParams } from "../schemas/webhooks.ts";
import { ForbiddenAddress, type Reach, requireReachable } from "../webhooks/address-policy.ts";
import { webhookToWire } from "../webhooks/webhook-wire.ts";

const PATH = "/api/v1/webhooks";
const common = { tag: "Webhooks", access: "webhooks" } as const;
const one = { params: webhookParams, errors: ["webhook_not_found"] } as const;
const found = { status: 200, description: "The webhook.", schemas: [webhook] } as const;

export const webhookEndpoints: readonly Endpoint[] = [
  endpoint({
    ...common,
    method: "POST",
    path: PATH,
    summary: "Have events delivered to an address",
    description:
      "What happens from now on is posted there in order, each event at least once, signed as Standard Webhooks describe. The secret is shown once.",
    body: webhookBody,
    example: { url: "https://example.com/mintmark", types: ["mint.accepted", "withdrawal.settled"] },
    success: { status: 201, description: "The webhook and its secret.", schemas: [issuedWebhook] },
    errors: ["too_many_webhooks"],
    async handle({ service: { engine, webhookReach }, principal, body: { url, types = [] } }) {
      requireAllowed(webhookReach, url);
      const { webhook: made, secret } = await engine.webhooks.create(principal.applicationId, { url, types });
      return { ...webhookToWire(made), secret };
    },
  }),
  endpoint({
    ...common,
    method: "GET",
    path: PATH,
    summary: "The application's webhooks and how they do",
    success: { status: 200, description: "All of them.", schemas: [webhookList] },
    async handle({ service: { engine }, principal }) {
      return { data: (await engine.webhooks.list(principal.applicationId)).map(webhookToWire) };
    },
  }),
  endpoint({
    ...common,
    ...one,
    method: "GET",
    path: `${PATH}/{webhookId}`,
    summary: "One webhook",
    success: found,
    async handle({ service: { engine }, principal, params }) {
      return webhookToWire(await engine.webhooks.get(principal.applicationId, params.webhookId));
    },
  }),
  endpoint({
    ...common,
    ...one,
    method: "DELETE",
    path: `${PATH}/{webhookId}`,
    summary: "Delete a webhook; nothing more is delivered to it",
    success: { ...found, description: "The webhook as it was." },
    async handle({ service: { engine }, principal, params }) {
      const last = await engine.webhooks.get(principal.applicationId, params.webhookId);
      await engine.webhooks.delete(principal.applicationId, params.webhookId);
      return webhookToWire(last);
    },
  }),
  endpoint({
    ...common,
    ...one,
    method: "POST",
    path: `${PATH}/{webhookId}/secret`,
    summary: "Give a webhook a new secret",
    description: "For a day deliveries are signed with the one before as well, so that the receiver can change over.",
    success: { status: 200, description: "The webhook and its new secret.", schemas: [issuedWebhook] },
    async handle({ service: { engine }, principal, params }) {
      const { webhook: rotated, secret } = await engine.webhooks.rotateSecret(
        principal.applicationId,
        params.webhookId,
      );
      return { ...webhookToWire(rotated), secret };
    },
  }),
  endpoint({
    ...common,
    ...one,
    method: "PUT",
    path: `${PATH}/{webhookId}/enablement`,
    summary: "Enable a webhook again that was disabled because it failed; deliveries go on where they stopped",
    success: found,
    async handle({ service: { engine }, principal, params }) {
      return webhookToWire(await engine.webhooks.enable(principal.applicationId, params.webhookId));
    },
  }),
];

/** Says at once what every delivery would fail with. Names are looked at when they are resolved, before each connection. */
function requireAllowed(reach: Reach, url: string): void {
  try {
    if (URL.canParse(url)) requireReachable(reach, new URL(url));
  } catch (error) {
    if (!(error instanceof ForbiddenAddress)) throw error;
    const issues = [{ pointer: "/url", code: "validation_failed", detail: error.message }] as const;
    throw new MintmarkError("validation_failed", undefined, { issues });
  }
}
