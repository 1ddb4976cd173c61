import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { eventType } from "../../server/routes/events.ts";

test("docs/events.md lists every type of event, and no other", () => {
  const page = readFileSync(new URL("../../docs/events.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^- `([a-z_.]+)`: /gm)].map(([, type]) => type);
  expect(listed).toEqual(eventType.options);
});
