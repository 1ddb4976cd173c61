import { expect, test } from "vitest";
import { createWorld, entries } from "./fixture.ts";

const HOUR = 3_600_000;

test("a server that listens forgets idempotency keys past their time, and no others", async () => {
  let now = Date.now() - 25 * HOUR;
  await using world = await createWorld({ clock: () => now });
  const [coin] = entries(world, 0);
  const mint = async (key: string, amount: number) => {
    const body = { users: [{ userId: world.users[0], mints: [{ ...coin, amount }] }] };
    return world.send("POST", "/api/v1/mint", { body, headers: { "Idempotency-Key": key } });
  };
  expect((await mint("old", 1)).status).toBe(200);
  now = Date.now() - 23 * HOUR;
  expect((await mint("young", 1)).status).toBe(200);
  now = Date.now();
  expect((await mint("old", 2)).body.code).toBe("idempotency_key_reused");
  await world.app.listen({ host: "127.0.0.1", port: 0 });
  await expect.poll(async () => (await mint("old", 2)).status).toBe(200);
  expect((await mint("young", 2)).body.code).toBe("idempotency_key_reused");
  expect((await mint("young", 1)).headers["idempotency-replayed"]).toBe("true");
  await world.app.close();
  expect((await world.engine.operator.verify()).problems).toEqual([]);
});
