import { describe, expect, it } from "vitest";
import type { EngineEvents } from "../../../core/index.ts";
import { EventHub } from "../../../core/ledger/event-hub.ts";
import { holding, signed } from "./l1-fixture.ts";

const withdrawal = (applicationId: string) => ({ applicationId }) as EngineEvents["withdrawal"];

describe("the hub of events", () => {
  it("publishes them in the order of emission, though some are read first and one fails", async () => {
    const hub = new EventHub();
    const told: (string | null)[] = [];
    hub.on("withdrawal", ({ applicationId }) => told.push(applicationId));
    hub.on("access", ({ applicationId }) => told.push(applicationId));
    const reads = [1, 2, 3].map(() => Promise.withResolvers<EngineEvents["withdrawal"]>());
    hub.emit("access", { applicationId: "first" });
    for (const { promise } of reads) hub.emit("withdrawal", () => promise);
    hub.emit("access", { applicationId: "last" });
    expect(told).toEqual(["first"]);
    reads[2]?.resolve(withdrawal("third"));
    reads[1]?.reject(new Error("the store has failed"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual(["first"]);
    reads[0]?.resolve(withdrawal("second"));
    await hub.told();
    expect(told).toEqual(["first", "second", "third", "last"]);
    hub.emit("access", { applicationId: "at once" });
    expect(told.at(-1)).toBe("at once");
  });
});

it("a withdrawal is published before its engine has closed", async () => {
  const made = await holding();
  const { engine, tenant } = made;
  const told: string[] = [];
  engine.events.on("withdrawal", ({ withdrawal: { status } }) => told.push(status));
  await engine.withdrawals.request(tenant.principal, await signed(made, 10n));
  await engine.close();
  expect(told).toEqual(["accepted"]);
});
