import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TokenBuckets } from "../../server/http/access/rate-limit.ts";
import { addressGroup, forwardedAddresses } from "../../server/http/address.ts";
import { createWorld } from "./fixture.ts";

describe("token buckets", () => {
  test("a bucket gives its units, then refills evenly", () => {
    let now = 0;
    const buckets = new TokenBuckets("key", { units: 100, windowSeconds: 10 }, () => now);
    expect(buckets.take("a", 100)).toEqual({
      granted: true,
      remaining: 0,
      resetSeconds: 10,
      retrySeconds: 0,
    });
    expect(buckets.take("a", 25)).toEqual({
      granted: false,
      remaining: 0,
      resetSeconds: 10,
      retrySeconds: 3,
    });
    expect(buckets.take("b", 1).granted).toBe(true);
    now = 2500;
    expect(buckets.take("a", 25)).toEqual({
      granted: true,
      remaining: 0,
      resetSeconds: 10,
      retrySeconds: 0,
    });
    now = 1_000_000;
    expect(buckets.take("a", 0).remaining).toBe(100);
  });

  test("a clock that steps back neither gives nor takes", () => {
    let now = 10_000;
    const buckets = new TokenBuckets("key", { units: 10, windowSeconds: 10 }, () => now);
    buckets.take("a", 5);
    now = 0;
    expect(buckets.take("a", 0).remaining).toBe(5);
  });

  test("callers who take nothing push nobody out who has spent", () => {
    const buckets = new TokenBuckets("owner-relay", { units: 10, windowSeconds: 10 }, () => 0);
    buckets.take("spent", 10);
    for (let i = 0; i < 10_001; i++) {
      buckets.take(`other ${i}`, 10);
      buckets.giveBack(`other ${i}`, 10);
    }
    expect(buckets.take("spent", 1).granted).toBe(false);
  });

  test("no more is ever granted than the burst and what refilled since", () => {
    const demand = fc.record({ cost: fc.nat(60), pause: fc.nat(3000) });
    fc.assert(
      fc.property(fc.array(demand, { maxLength: 60 }), (demands) => {
        let now = 0;
        let granted = 0;
        const buckets = new TokenBuckets("key", { units: 50, windowSeconds: 5 }, () => now);
        for (const { cost, pause } of demands) {
          now += pause;
          const grant = buckets.take("a", cost);
          if (grant.granted) granted += cost;
          expect(grant.remaining).toBeGreaterThanOrEqual(0);
          expect(granted).toBeLessThanOrEqual(50 + (now / 1000) * 10 + 1e-6);
          if (!grant.granted && cost <= 50) {
            // The promised wait is enough.
            now += grant.retrySeconds * 1000;
            expect(buckets.take("a", cost).granted).toBe(true);
            granted += cost;
          }
        }
      }),
    );
  });
});

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["::ffff:10.0.0.1", "10.0.0.1"],
  ["::ffff:a00:1", "10.0.0.1"],
  ["198.51.100.8:40000", "198.51.100.8"],
  ["[2001:db8:1:2::9]:443", "2001:db8:1:2"],
  ["2001:DB8:1:0002::9", "2001:db8:1:2"],
  ['"[2001:db8:1:2::9]"', "2001:db8:1:2"],
  ["::ffff:198.51.100.8%eth0", "198.51.100.8"],
  ["64:ff9b::198.51.100.8", "64:ff9b:0:0"],
  ["", "unknown"],
  ["unknown", "unknown"],
  ["_hidden", "unknown"],
  ["198.51.100.008", "unknown"],
  ["198.51.100.8:port", "unknown"],
  ["1:2", "unknown"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2::9", "2001:db8:1:2"],
  ["::1", "0:0:0:0"],
  ["fe80::1%eth0", "fe80:0:0:0"],
])("%s is limited as %s", (address, group) => {
  expect(addressGroup(address)).toBe(group);
});

test.each([
  ["198.51.100.8", "198.51.100.8"],
  ["198.51.100.8:40000,[2001:db8::1]:443 , ::ffff:10.0.0.2", "198.51.100.8, 2001:db8::1, 10.0.0.2"],
  ["10.0.0.1, unknown, 198.51.100.8", "198.51.100.8"],
  ["198.51.100.8, unknown", ""],
])("an X-Forwarded-For of %s names %s", (field, addresses) => {
  expect(forwardedAddresses(field)).toBe(addresses);
});

/** Where a caller behind two trusted proxies can write of itself, as proxies write it. */
test.each([
  ["ports", (i: number) => `198.51.100.8:${40_000 + i}`],
  ["IPv6 with ports", (i: number) => `[2001:db8::${i.toString(16)}]:${40_000 + i}`],
  ["IPv4 in IPv6", (i: number) => (i % 2 === 0 ? "198.51.100.8" : "::ffff:c633:6408")],
  ["zones", (i: number) => `fe80::1%eth${i}`],
  [
    "a second proxy with a port",
    (i: number) => `198.51.100.8:${40_000 + i}, 10.0.0.2:${5_000 + i}`,
  ],
  ["text that is no address", (i: number) => `stranger-${i}`],
  ["invented addresses before one", (i: number) => `192.0.2.${i}, unknown:${i}, 198.51.100.8`],
])("a wrong key behind a proxy that sends %s is counted by its address", async (_, field) => {
  await using world = await createWorld({ trustedProxies: ["127.0.0.1", "10.0.0.2"] });
  const statuses: number[] = [];
  for (let i = 0; i < 32; i++) {
    const headers = { "x-forwarded-for": field(i) };
    statuses.push(
      (await world.send("GET", "/api/v1/users", { key: "mm_test_wrong", headers })).status,
    );
  }
  expect(statuses).toEqual([...Array(30).fill(401), 429, 429]);
  const headers = { "x-forwarded-for": "203.0.113.5, 10.0.0.2:7000" };
  const other = await world.send("GET", "/api/v1/users", { key: "mm_test_wrong", headers });
  expect(other.status).toBe(401);
});
