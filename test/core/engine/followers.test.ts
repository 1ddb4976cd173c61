import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Followers } from "../../../core/ledger/followers.ts";
import { fixture, mintOf, requestOf } from "./fixture.ts";

describe("followers of events", () => {
  it("who leave while they are due are not woken", async () => {
    const followers = new Followers();
    const leaving = new AbortController();
    const { signal } = new AbortController();
    const staying = Array.from({ length: 100 }, () => followers.next(1, signal));
    const left = followers.next(1, leaving.signal);
    followers.wake(1);
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    await Promise.all(staying);
  });

  it("all read every event in order, even if most of them waited for their turn", async () => {
    const { engine, tenant, assets } = await fixture();
    await using _ = engine;
    const end = new AbortController();
    const [rounds, readers] = [20, 500];
    const before = await lastSequence(engine.events.stream(tenant.applicationId));
    const read = Array.from({ length: readers }, async () => {
      const seen: number[] = [];
      const { signal } = end;
      for await (const event of engine.events.stream(tenant.applicationId, {
        after: before,
        follow: true,
        signal,
      })) {
        seen.push(event.sequence);
        if (seen.length === rounds) return seen;
      }
      return seen;
    });
    for (let round = 0; round < rounds; round++) {
      await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 1_000 + round)));
      await wait(1);
    }
    const expected = Array.from({ length: rounds }, (__, i) => before + 1 + i);
    for (const seen of await Promise.all(read)) expect(seen).toEqual(expected);
  });
});

async function lastSequence(events: AsyncIterable<{ readonly sequence: number }>): Promise<number> {
  let value = 0;
  for await (const { sequence } of events) value = sequence;
  return value;
}
