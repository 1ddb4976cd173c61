import { expect, test } from "vitest";
import type { Webhook } from "../../../core/index.ts";
import { WebhookDispatcher } from "../../../core/webhooks/dispatcher.ts";

test("a change of an application looks at its own webhooks alone", async () => {
  let looks = 0;
  const told: ((event: { readonly applicationId: string }) => void)[] = [];
  const webhookOf = (applicationId: string) => ({
    webhookId: `webhook of ${applicationId}`,
    types: [],
    delivered: 0,
    get applicationId() {
      looks++;
      return applicationId;
    },
  });
  const engine = {
    events: {
      on(_types: string, listener: (typeof told)[number]) {
        told.push(listener);
        return () => {};
      },
      async *stream(_: string, { signal }: { readonly signal: AbortSignal }) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    },
    operator: {
      webhooks: {
        applications: () => Array.from({ length: 1_000 }, (_, i) => `application ${i}`),
        deliverable: (applicationId: string) => [webhookOf(applicationId) as unknown as Webhook],
      },
    },
  };
  const dispatcher = new WebhookDispatcher(engine as never);
  dispatcher.start();
  expect(looks).toBeLessThan(10_000);
  looks = 0;
  for (const tell of told) tell({ applicationId: "application 7" });
  expect(looks).toBeLessThan(10);
  await dispatcher.stop();
});
