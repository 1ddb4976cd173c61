import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decodeRecord, encodeRecord } from "../../../core/store/layout.ts";
import { headRecord } from "../../../core/store/records.ts";
import { HEAD_KEY } from "../../../core/store/store-keys.ts";
import { all, memory, openTest } from "./fixture.ts";

/** Stores that earlier versions wrote, by what records got since. A line is a record: its key and its value in hex. */
const STORES = ["before-later-fields"];

function records(name: string): { readonly key: Buffer; readonly value: Buffer }[] {
  const text = readFileSync(new URL(`./old-stores/${name}.txt`, import.meta.url), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => line.split(" ").map((hex) => Buffer.from(hex, "hex")))
    .map(([key = Buffer.alloc(0), value = Buffer.alloc(0)]) => ({ key, value }));
}

describe.each(STORES)("a store from %s", (name) => {
  const load = async () => {
    const database = memory();
    await database.batch(records(name).map((record) => ({ type: "put" as const, ...record })));
    return database;
  };

  it("opens, matches its journal, and continues", async () => {
    await using engine = await openTest(await load());
    expect((await engine.operator.verify()).problems).toEqual([]);
    const [application] = await all(engine.applications.list());
    const { applicationId = "" } = application ?? {};
    const { secret } = await engine.keys.issue(applicationId);
    const principal = await engine.keys.authenticate(secret);
    const { ownerAddress } = (await engine.users.list(applicationId)).data[0] ?? { ownerAddress: "0x" };
    const { userId } = await engine.users.create(applicationId, { ownerAddress });
    const [erc721] = (await engine.assets.list(applicationId, { standard: ["erc721"] })).data;
    const minted = (await engine.vaults.list(applicationId)).data.length;
    const mint = { assetId: erc721?.assetId, tokenId: "1000", amount: 1, dataAvailabilityMode: "validium" };
    await engine.mint(principal, { users: [{ userId, mints: [mint] }] });
    expect((await engine.vaults.list(applicationId)).data).toHaveLength(minted + 1);
    expect(erc721).toMatchObject({ rawBlobs: false, dataAvailabilityMode: null });
    const owned = await all(engine.users.list(applicationId, { ownerAddress }));
    expect(owned).toEqual(
      (await all(engine.users.list(applicationId))).filter((user) => user.ownerAddress === ownerAddress),
    );
    expect(owned.length).toBeGreaterThan(1);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

it("refuses a store to which a newer version has added indexes, and changes nothing", async () => {
  const database = memory();
  await (await openTest(database)).close();
  await database.open();
  const stored = Buffer.from((await database.get<Buffer, Buffer>(HEAD_KEY, BINARY)) ?? []);
  const head = decodeRecord(headRecord, stored, "The head");
  const newer = encodeRecord(headRecord, { ...head, indexVersion: head.indexVersion + 1 });
  await database.put<Buffer, Buffer>(HEAD_KEY, newer, BINARY);
  const refused = { code: "store_mismatch", message: expect.stringContaining("newer version") };
  await expect(openTest(database, { createIfMissing: false })).rejects.toMatchObject(refused);
  await database.open();
  expect(Buffer.from((await database.get<Buffer, Buffer>(HEAD_KEY, BINARY)) ?? [])).toEqual(Buffer.from(newer));
});

const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
