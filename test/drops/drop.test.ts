import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test, vi } from "vitest";
import {
  type DropTask,
  dropId,
  engineMinting,
  RequestRefused,
  runDrop,
  UnsureOutcome,
} from "../../core/drops/drop.ts";
import { Drops } from "../../core/drops/drops.ts";
import { AnotherDrop } from "../../core/drops/progress.ts";
import { rowsOf } from "../../core/drops/rows.ts";
import { surveyOf } from "../../core/drops/windows.ts";
import { TokenBuckets } from "../../server/http/access/rate-limit.ts";
import { EventLoopTurns } from "../../server/http/turns.ts";
import { paceOf } from "../../server/service.ts";
import { createWorld } from "../server/fixture.ts";

let files = 0;
const world = await createWorld();
const folder = mkdtempSync(join(tmpdir(), "mintmark-drop-"));
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** The text in pieces of a few bytes, so that rows, characters and line ends are cut. */
async function* piecesOf(text: string | Buffer, length = 7): AsyncGenerator<Uint8Array> {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

const survey = (text: string | Buffer, format: "csv" | "ndjson" = "csv", assetId?: string) =>
  surveyOf(piecesOf(text), format, { assetId }, world.engine.limits);
const owner = (index: number) => `0x${(0x1000 + index).toString(16).padStart(40, "0")}`;
const lines = (path: string) =>
  readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** A drop that mints in the world's engine, with files of its own. */
function task(text: string, more: Partial<DropTask> = {}): DropTask {
  const result = join(folder, `${++files}.ndjson`);
  const principal = {
    applicationId: world.applicationId,
    keyId: world.keyId,
    scopes: ["mint", "users"] as const,
  };
  const { signal } = new AbortController();
  return {
    id: dropId(`digest ${files}`, {}, ""),
    source: piecesOf(text, 4096),
    format: "csv",
    defaults: { assetId: world.erc20.assetId, dataAvailabilityMode: "validium" },
    minting: engineMinting(world.engine, async () => {}, principal, false, signal),
    result,
    progress: `${result}.progress`,
    signal,
    onProgress: () => {},
    ...more,
  };
}

/** The balance of the ERC-20 asset, by everyone's vaults. */
async function balanceOf(ownerAddress: string): Promise<bigint> {
  let sum = 0n;
  const { assetId } = world.erc20;
  const filter = { ownerAddress: ownerAddress as `0x${string}`, assetId };
  for await (const vault of world.engine.vaults.list(world.applicationId, filter))
    sum += vault.amount;
  return sum;
}

describe("the form of the rows", () => {
  const asset = "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a20";
  const good = owner(1);

  test.each([
    [
      "a wrong address",
      `ownerAddress,amount\n${good},1\n0x12,1\n`,
      3,
      "ownerAddress",
      "40 hex digits",
    ],
    [
      "a wrong checksum",
      `ownerAddress,amount\n0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed,1\n`,
      2,
      "ownerAddress",
      "EIP-55",
    ],
    ["no recipient", "amount\n1\n", 2, "userId", "or give ownerAddress"],
    ["a wrong amount", `ownerAddress,amount\n${good},1,5\n`, 2, "", "more or fewer"],
    ["no amount", `ownerAddress,amount\n${good},x\n`, 2, "amount", "decimal text"],
    ["half a unit", `ownerAddress,units\n${good},1.5\n`, 2, "units", "integer"],
    ["a quantity that is none", `ownerAddress,quantity\n${good},many\n`, 2, "quantity", "from 1"],
    [
      "a wrong id behind an empty line",
      `ownerAddress,tokenId\n\n${good},x1\n`,
      3,
      "tokenId",
      "decimal",
    ],
    ["a short row", `ownerAddress,amount\n${good},1\n${good}\n`, 3, "", "fewer fields"],
    ["an open quote", `ownerAddress,amount\n${good},"1\n`, 2, "", "does not end"],
    ["an unknown column", `ownerAddress,tokenid\n${good},1\n`, 1, "", '"tokenid"'],
    ["no rows", "ownerAddress,amount\n", 0, "", "no rows"],
    ["users and owners", `userId,ownerAddress\n${asset},\n,${good}\n`, 3, "ownerAddress", "userId"],
  ])("finds %s, and names its row", async (_, text, row, field, detail) => {
    const { errors } = await survey(text, "csv", asset);
    expect(errors[0]).toMatchObject({
      row,
      field,
      code: "validation_failed",
      detail: expect.stringContaining(detail),
    });
  });

  test("is found in a file of another encoding, instead of a name with holes", async () => {
    const inLatin1 = (text: string) => survey(Buffer.from(text, "latin1"), "csv", asset);
    expect(
      (await inLatin1(`ownerAddress,tokenId,name\n${good},1,One\n${good},2,Café\n`)).errors,
    ).toMatchObject([
      { row: 3, detail: "name has bytes that are not UTF-8; save the file as CSV in UTF-8" },
    ]);
    expect(
      (await inLatin1(`ownerAddress,tokenId,attribute:Größe\n${good},1,XL\n`)).errors,
    ).toMatchObject([
      { row: 1, detail: "the header has bytes that are not UTF-8; save the file as CSV in UTF-8" },
    ]);
    const line = Buffer.from(`{"ownerAddress":"${good}","reference":"Café"}\n`, "latin1");
    expect((await survey(line, "ndjson", asset)).errors).toMatchObject([
      { row: 1, detail: "the line has bytes that are not UTF-8; save the file in UTF-8" },
    ]);
  });

  test.each(["a", ",", '"', "\u00e9"])(
    "refuses an endless row of %s before it fills the memory",
    async (letter) => {
      let read = 0;
      async function* endless() {
        yield Buffer.from(`ownerAddress,amount\n${good},1\n`);
        // So a parser that reads all of them fails, instead of hanging.
        for (; read < 64; read++) {
          yield Buffer.from(letter.repeat(65_536 / Buffer.byteLength(letter)));
        }
      }
      const { errors } = await surveyOf(endless(), "csv", { assetId: asset }, world.engine.limits);
      expect(errors).toMatchObject([{ row: 3, detail: "the row has more than 65536 bytes" }]);
      expect(read).toBeLessThan(64);
    },
  );

  test("of NDJSON is found too, and numbers that JSON readers round", async () => {
    const entry = (more: string) => `{"ownerAddress":"${good}","assetId":"${asset}",${more}}`;
    const found = async (line: string) =>
      (await survey(`${entry('"amount":"5"')}\n\n${line}`, "ndjson")).errors;
    expect(await found(entry('"amount":2'))).toEqual([]);
    expect(await found(entry('"amount":9007199254740993'))).toMatchObject([
      { row: 3, detail: expect.stringContaining("string") },
    ]);
    expect(await found(entry('"price":1'))).toMatchObject([
      { row: 3, detail: expect.stringContaining('"price"') },
    ]);
    expect(await found("[1]")).toMatchObject([{ row: 3, detail: "the line is not a JSON object" }]);
  });

  test("passes over rows and columns that a spreadsheet saves without any value", async () => {
    const rows = `tokenId,ownerAddress,name,,\r\n1,${good},One,,\r\n,,,,\r\n2,${good},Two,,\r\n,,,,\r\n`;
    expect(await survey(rows, "csv", asset)).toMatchObject({ rows: 2, errors: [] });
    expect((await survey(`${rows}3,${good},Three,,x\r\n`, "csv", asset)).errors).toMatchObject([
      { detail: "column 5 has a value, and no name in the header" },
    ]);
  });

  test.each([
    ["csv", `tokenId,ownerAddress\r1,${owner(1)}\r`, "the lines end with CR alone"],
    ["csv", `tokenId;ownerAddress\n1;${owner(1)}\n`, "the columns are separated by semicolons"],
    ["csv", `sep=,\ntokenId,ownerAddress\n1,${owner(1)}\n`, "the first line names the separator"],
    ["csv", `tokenId\townerAddress\n1\t${owner(1)}\n`, "the columns are separated by tabs"],
    ["csv", `[{"tokenId":"1"}]`, "the file is JSON"],
    ["csv", `"tokenId";"ownerAddress"\r\n"1";"${owner(1)}"\r\n`, "separated by semicolons"],
    ["csv", `\ufefftokenId;"ownerAddress"\r\n1;"${owner(1)}"\r\n`, "separated by semicolons"],
    ["csv", `"tokenId"\t"ownerAddress"\n"1"\t"${owner(1)}"\n`, "separated by tabs"],
    ["csv", `"sep=;"\n"tokenId";"ownerAddress"\n`, "the first line names the separator"],
    ["csv", `tokenId,ownerAddress\r1,"${owner(1)}"\r`, "the lines end with CR alone"],
    ["csv", `tokenId,attribute:\n1,red\n`, 'the header names "attribute:"; the columns are'],
    ["csv", `tokenId,number:\n1,7\n`, 'the header names "number:"; the columns are'],
    ["ndjson", `[\n  {"tokenId":"1"}\n]`, "the file is a JSON array"],
    ["ndjson", `{"tokenId":"1"},\n{"tokenId":"2"}\n`, "a comma follows the object"],
    ["ndjson", `{\n  "tokenId": "1"\n}\n`, "the object does not end in its line"],
    ["ndjson", `{"tokenId":"1"\n`, "the object does not end in its line"],
    ["ndjson", `{"tokenId":"1"}{"tokenId":"2"}\n`, "the line has several objects"],
    ["ndjson", `{"tokenId":"1"}\r{"tokenId":"2"}\r`, "the lines end with CR alone"],
    ["ndjson", `tokenId,ownerAddress\n1,${owner(1)}\n`, "send a CSV file as CSV"],
  ] as const)("of %s in another form says which: %j", async (format, text, detail) => {
    expect((await survey(text, format, asset)).errors).toMatchObject([
      { row: 1, detail: expect.stringContaining(detail) },
    ]);
  });

  test("of a spreadsheet's Unicode text says so, and an array behind empty lines is one too", async () => {
    const text = `\ufefftokenId\townerAddress\r\n1\t${good}\r\n`;
    const little = Buffer.from(text, "utf16le");
    for (const format of ["csv", "ndjson"] as const)
      for (const bytes of [little, Buffer.from(little).swap16()])
        expect((await survey(bytes, format, asset)).errors).toMatchObject([
          { row: 1, detail: expect.stringContaining("is in UTF-16") },
        ]);
    expect((await survey(`\n \n[{"tokenId":"1"}]\n`, "ndjson", asset)).errors).toMatchObject([
      { row: 3, detail: expect.stringContaining("the file is a JSON array") },
    ]);
  });

  test("takes a semicolon in a quoted name, and none for a comma behind a quoted cell", async () => {
    const names = `"attribute:Colour; shade",tokenId,ownerAddress`;
    expect((await survey(`${names}\nred,1,${good}\n`, "csv", asset)).errors).toEqual([]);
    expect((await survey(`tokenId,name\n"1";"x"\n`, "csv", asset)).errors).toMatchObject([
      { row: 2, detail: expect.stringContaining("goes on after its last quote") },
    ]);
  });

  test("reads a number of a CSV file, and none that JSON would round", async () => {
    const read = async (level: string) =>
      Array.fromAsync(rowsOf(piecesOf(`tokenId,number:Level\n1,${level}\n`), "csv"));
    expect(await read("12.5")).toMatchObject([
      { fields: { metadata: { attributes: [{ trait_type: "Level", value: 12.5 }] } } },
    ]);
    for (const level of ["high", "9007199254740993", "007"])
      await expect(read(level)).rejects.toThrow("number:Level is not a number that JSON holds");
  });

  test("refuses an attribute in two columns, as text and as a number", async () => {
    const headed = (columns: string) =>
      Array.fromAsync(rowsOf(piecesOf(`tokenId,${columns}\n1,7,8\n`), "csv"));
    for (const columns of ["attribute:Level,number:Level", "number:Level,number:Level"])
      await expect(headed(columns)).rejects.toThrow("the header names a column twice");
    expect(await headed("name,attribute:name")).toMatchObject([
      { fields: { metadata: { name: "7", attributes: [{ trait_type: "name", value: "8" }] } } },
    ]);
  });

  test("makes the same rows of every way to cut and end the lines", async () => {
    const text = `\ufeffownerAddress,amount,reference\r\n"${good}", 7 ,"größer, ""weit"""\r\n${owner(2)},8,\r\n`;
    for (const one of [text, text.replaceAll("\r\n", "\n"), text.trimEnd()]) {
      expect(await survey(one, "csv", asset)).toMatchObject({ rows: 2, errors: [] });
    }
    const drop = task(text);
    await runDrop(drop);
    const [{ transactionIds }] = lines(drop.result);
    const { reference } = await world.engine.transactions.get(
      world.applicationId,
      transactionIds[0],
    );
    expect(reference).toBe('größer, "weit"');
  });
});

describe("a drop", () => {
  test("writes a line for each row: its transactions, vaults and tokens, or why it is refused", async () => {
    const { assetId } = world.erc721;
    const text = ["ownerAddress,tokenId,assetId,amount"];
    for (let id = 0; id < 300; id++)
      text.push(`${owner(id % 40)},${7_000 + (id % 290)},${assetId},`);
    text.push(`${owner(1)},,,12`, `${owner(2)},,${world.users[0]},3`);
    const drop = task(text.join("\n"));
    expect(await runDrop(drop)).toMatchObject({ minted: 291, refused: 11, unknown: 0 });
    const found = lines(drop.result);
    expect(found.map(({ row }) => row)).toEqual(Array.from({ length: 302 }, (_, i) => i + 2));
    expect(found[5]).toMatchObject({ status: "minted", tokenIds: ["7005"] });
    expect(found[300]).toMatchObject({ status: "minted", tokenIds: [] });
    expect(found[301]).toMatchObject({ status: "refused", code: "asset_not_found" });
    for (const line of found.slice(290, 300))
      expect(line).toMatchObject({ status: "refused", code: /duplicate_mint|minted/ });
    const vault = await world.engine.vaults.get(world.applicationId, BigInt(found[41].vaultIds[0]));
    expect(vault).toMatchObject({ tokenId: 7_041n, ownerAddress: owner(1) });
  });

  test("mints a row's quantity, and tells its ids", async () => {
    const { engine, applicationId } = world;
    const contractAddress = `0x${"ab".repeat(20)}` as const;
    const names = { name: "Seats", symbol: "SEAT" };
    const numbered = { standard: "erc721", contractAddress, ...names, firstTokenId: 5n } as const;
    const { assetId } = await engine.assets.add(numbered);
    await engine.assets.whitelist(assetId);
    await engine.operator.recordRegistered(assetId, { minterLocked: true });
    await engine.assets.enable(applicationId, assetId);
    const text = `ownerAddress,quantity\n${owner(1)},2\n${owner(2)},\n${owner(1)},1200\n${owner(3)},3\n`;
    const drop = task(text, { defaults: { assetId, dataAvailabilityMode: "zk-rollup" } });
    expect(await runDrop(drop)).toMatchObject({ minted: 4 });
    const ids = lines(drop.result).map(({ tokenIds }) => [tokenIds[0], tokenIds.length]);
    expect(ids).toEqual([
      ["5", 2],
      ["7", 1],
      ["8", 1200],
      ["1208", 3],
    ]);
  });

  test("stops for what refuses the request as a whole, and goes on when that has passed", async () => {
    const { engine, applicationId } = world;
    const { key } = await engine.keys.issue(applicationId, { mintQuota: 150n });
    const principal = { applicationId, keyId: key.keyId, scopes: ["mint", "users"] as const };
    const text = `ownerAddress,amount\n${Array.from({ length: 250 }, (_, i) => `${owner(5_000 + i)},3`).join("\n")}`;
    const { signal } = new AbortController();
    const poor = task(text);
    const minting = engineMinting(engine, async () => {}, principal, false, signal);
    await expect(runDrop({ ...poor, minting })).rejects.toMatchObject({ code: "quota_exceeded" });
    expect(lines(poor.result)).toHaveLength(100);
    expect(await runDrop({ ...poor, source: piecesOf(text, 4096) })).toMatchObject({ minted: 250 });
    for (const i of [0, 99, 100, 249]) expect(await balanceOf(owner(5_000 + i))).toBe(3n);
  });

  test("costs its key what mint requests of its rows cost, a check too, and waits where these are refused", async () => {
    let now = 0;
    const buckets = new TokenBuckets("key", { units: 10_000, windowSeconds: 1 }, () => now);
    const principal = {
      applicationId: world.applicationId,
      keyId: world.keyId,
      scopes: ["mint", "users"] as const,
    };
    const { signal } = new AbortController();
    const minting = engineMinting(
      world.engine,
      paceOf(new EventLoopTurns(), buckets),
      principal,
      true,
      signal,
    );
    const text = `ownerAddress,amount\n${Array.from({ length: 250 }, (_, i) => `${owner(6_000 + i)},3`).join("\n")}`;
    await runDrop(task(text, { minting }));
    expect(buckets.take(world.keyId, 10_000)).toMatchObject({ granted: false, remaining: 9_750 });
    expect(buckets.take(world.keyId, 9_700).granted).toBe(true);
    let isOver = false;
    const waiting = runDrop(task(text, { minting })).then(() => {
      isOver = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isOver).toBe(false);
    now = 1_000;
    await waiting;
  });
});

describe("others get their turns", () => {
  const FAULTY = {
    csv: `ownerAddress,tokenId\n${"x,y\n".repeat(400_000)}`,
    ndjson: "{}\n".repeat(400_000),
  };
  const good = (count: number) =>
    Array.from({ length: count }, (_, i) => `${owner(20_000 + i)},3\n`).join("");
  const principal = {
    applicationId: world.applicationId,
    keyId: world.keyId,
    scopes: ["mint", "users"] as const,
  };

  test.each(["csv", "ndjson"] as const)(
    "because a %s file is read only to its 100th fault",
    async (format) => {
      let pieces = 0;
      async function* counted() {
        for await (const piece of piecesOf(FAULTY[format], 65_536)) {
          pieces += 1;
          yield piece;
        }
      }
      const found = await surveyOf(counted(), format, {}, world.engine.limits);
      expect([found.errors.length, found.moreErrors]).toEqual([100, true]);
      expect(found.rows).toBeLessThanOrEqual(1_001);
      expect(pieces).toBeLessThanOrEqual(2);
    },
  );

  test.each([
    ["short rows", `ownerAddress,amount\n${good(4_000)}`],
    [
      "many columns",
      `ownerAddress,amount,${Array.from({ length: 998 }, (_, i) => `attribute:${i}`).join()}\n${`${owner(1)},1${",".repeat(998)}\n`.repeat(150)}`,
    ],
  ])("after every few hundred rows or bytes of a file with %s", async (_, text) => {
    let [bytes, rows, before] = [0, 0, 0];
    const most = { rows: 0, bytes: 0 };
    async function* counted() {
      for await (const piece of piecesOf(text, 1_024)) {
        bytes += piece.length;
        yield piece;
      }
    }
    const turn = async (total: number) => {
      most.rows = Math.max(most.rows, total - rows);
      most.bytes = Math.max(most.bytes, bytes - before);
      [rows, before] = [total, bytes];
    };
    const { errors } = await surveyOf(
      counted(),
      "csv",
      { assetId: world.erc20.assetId },
      world.engine.limits,
      turn,
    );
    expect(errors).toEqual([]);
    expect(rows).toBeGreaterThan(0);
    expect(most.rows).toBeLessThanOrEqual(256);
    expect(most.bytes).toBeLessThanOrEqual(16_384);
  });

  test("on a thread of their own, while ten drops are uploaded at once", async () => {
    await using drops = new Drops({
      folder: join(folder, "ten"),
      engine: world.engine,
      onError: (error) => expect(error).toBeUndefined(),
    });
    const defaults = { assetId: world.erc20.assetId, dataAvailabilityMode: "validium" };
    const text = `ownerAddress,amount\n${good(6_000)}x,y\n`;
    const [own, all] = [process.threadCpuUsage(), process.cpuUsage()];
    const uploads = Array.from({ length: 10 }, (_, i) => {
      const read: number[] = [];
      const asked = { format: "csv", defaults, onRows: (rows: number) => read.push(rows) } as const;
      return drops.upload(principal, asked, piecesOf(`${text}${i}`, 65_536)).then(
        () => ["taken", read] as const,
        ({ code }) => [code, read] as const,
      );
    });
    for (const [outcome, read] of await Promise.all(uploads)) {
      expect(outcome).toBe("drop_invalid");
      expect(read).toEqual(read.toSorted((a, b) => a - b));
      expect(read.at(-1)).toBeGreaterThanOrEqual(6_000);
    }
    const cpu = ({ user, system }: { readonly user: number; readonly system: number }) =>
      user + system;
    expect(cpu(process.threadCpuUsage(own))).toBeLessThan(cpu(process.cpuUsage(all)) / 3);
  });

  test("no further than its caller lets it", async () => {
    await using drops = new Drops({
      folder: join(folder, "let"),
      engine: world.engine,
      onError: (error) => expect(error).toBeUndefined(),
    });
    const defaults = { assetId: world.erc20.assetId, dataAvailabilityMode: "validium" };
    const stop = new Error("no more");
    const told: number[] = [];
    const onRows = (rows: number) => {
      told.push(rows);
      if (rows > 100) throw stop;
    };
    const text = `ownerAddress,amount\n${good(30_000)}`;
    const asked = { format: "csv", defaults, onRows } as const;
    await expect(drops.upload(principal, asked, piecesOf(text, 65_536))).rejects.toBe(stop);
    expect(told.filter((rows) => rows > 100)).toHaveLength(1);
  });

  test("in some hundreds of rows, not fewer, while that takes no millisecond", async () => {
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    let turns = 0;
    const turn = async () => {
      turns += 1;
    };
    try {
      const text = `ownerAddress,amount\n${good(10_000)}`;
      const { limits } = world.engine;
      const defaults = { assetId: world.erc20.assetId };
      const { rows } = await surveyOf(piecesOf(text, 65_536), "csv", defaults, limits, turn);
      expect(rows).toBe(10_000);
    } finally {
      now.mockRestore();
    }
    // One more is at the end.
    expect(turns).toBeLessThanOrEqual(Math.ceil(10_000 / 256) + 1);
  });

  test("while a drop goes on behind the rows that it has minted", async () => {
    const text = `ownerAddress,amount\n${good(3_000)}`;
    const drop = task(text);
    await runDrop(drop);
    let turns = 0;
    const turn = async () => {
      turns += 1;
    };
    expect((await runDrop({ ...drop, source: piecesOf(text, 65_536), turn })).minted).toBe(3_000);
    expect(turns).toBeGreaterThanOrEqual(11);
  });
});

/**
 * Each owner twice, in windows of their own; one row in each window is refused, and ERC-721 and
 * ERC-20 mix.
 */
function mixedRows(first: number): string[] {
  const { assetId } = world.erc721;
  return Array.from({ length: 450 }, (_, i) => {
    const to = owner(first + (i % 225));
    if (i % 90 === 7) return `${to},${first},${assetId},`;
    return i % 9 === 0 ? `${to},${first + i},${assetId},` : `${to},,,${1 + i}`;
  });
}

describe("a drop that is killed", () => {
  test("at any point goes on without a double or a gap", async () => {
    let first = 100_000;
    const steps = fc.array(
      fc.record({ requests: fc.nat(6), after: fc.boolean(), torn: fc.nat(40) }),
      { maxLength: 5 },
    );
    const property = fc.asyncProperty(steps, async (kills) => {
      first += 1_000;
      const rows = mixedRows(first);
      const text = ["ownerAddress,tokenId,assetId,amount", ...rows].join("\n");
      const drop = task(text);
      for (const { requests, after, torn } of kills) {
        const minting = dying(drop, requests, after);
        await runDrop({ ...drop, minting, source: piecesOf(text, 4096) }).catch(
          (error: unknown) => {
            if (!(error instanceof Killed)) throw error;
            // A killed process leaves this: more of the result than the progress knows of, and half
            // a line.
            appendFileSync(drop.result, "x".repeat(torn));
            appendFileSync(drop.progress, '{"done":'.slice(0, torn));
          },
        );
      }
      const counts = await runDrop({ ...drop, source: piecesOf(text, 4096) });
      const found = lines(drop.result);
      expect(found.map(({ row }) => row)).toEqual(rows.map((_, i) => i + 2));
      const refused = rows.flatMap((_, i) => (i % 90 === 7 ? [i + 2] : []));
      expect(found.filter(({ status }) => status === "refused").map(({ row }) => row)).toEqual(
        refused,
      );
      expect(counts).toMatchObject({
        minted: 450 - refused.length,
        refused: refused.length,
        unknown: 0,
      });
      for (const i of [1, 2, 97, 224]) {
        const own = [i, i + 225].filter((at) => at < 450 && rows[at]?.includes(",,,"));
        expect(await balanceOf(owner(first + i))).toBe(
          own.reduce((sum, at) => sum + BigInt(1 + at), 0n),
        );
      }
    });
    await fc.assert(property, { numRuns: 15 });
  });

  class Killed extends Error {}

  /** Dies at a request, before or after it is minted. */
  function dying({ minting }: DropTask, requests: number, after: boolean): DropTask["minting"] {
    let left = requests;
    return {
      async mint(body, key) {
        if (left-- > 0) return minting.mint(body, key);
        if (after) await minting.mint(body, key).catch(() => {});
        throw new Killed();
      },
    };
  }

  test("and has lost its files says which rows it cannot tell, and mints none twice", async () => {
    const first = 300_000;
    const text = ["ownerAddress,tokenId,assetId,amount", ...mixedRows(first)].join("\n");
    const drop = task(text);
    await runDrop(drop);
    for (const file of [drop.result, drop.progress]) rmSync(file);
    const again = await runDrop({ ...drop, source: piecesOf(text, 4096) });
    // Windows with a refused row were minted without it, which a fresh start cannot know.
    expect(again.unknown).toBeGreaterThan(0);
    expect(again.minted + again.refused + again.unknown).toBe(450);
    for (const i of [1, 2, 98])
      expect(await balanceOf(owner(first + i))).toBe(BigInt(1 + i + (1 + i + 225)));
  });

  test("more than 23 hours ago asks what became of the last request", async () => {
    const text = `ownerAddress,amount\n${owner(400_000)},5\n${owner(400_001)},6\n`;
    const drop = task(text);
    await expect(runDrop({ ...drop, minting: dying(drop, 0, true) })).rejects.toThrow(Killed);
    const old = readFileSync(drop.progress, "utf8").replace(
      /"at":\d+/,
      `"at":${Date.now() - 24 * 3_600_000}`,
    );
    truncateSync(drop.progress);
    appendFileSync(drop.progress, old);
    const again = () => ({ ...drop, source: piecesOf(text) });
    await expect(runDrop(again())).rejects.toThrow(UnsureOutcome);
    await expect(runDrop(again())).rejects.toThrow("Rows 2 to 3");
    expect(await runDrop({ ...again(), unsure: "minted" })).toMatchObject({ minted: 2 });
    expect(lines(drop.result)).toEqual([
      { row: 2, status: "minted" },
      { row: 3, status: "minted" },
    ]);
    expect(await balanceOf(owner(400_000))).toBe(5n);
  });

  test("keeps what was refused of many rows, over several requests of one window", async () => {
    const { assetId } = world.erc721;
    const rows = Array.from(
      { length: 350 },
      (_, i) => `${owner(600_000)},${i < 300 ? 7_000 : 600_000 + i},${assetId},`,
    );
    const text = ["ownerAddress,tokenId,assetId,amount", ...rows].join("\n");
    const drop = task(text);
    // Each request names a hundred wrong rows at most; the third dies before it is answered, the
    // last after it is minted.
    for (const [requests, after] of [
      [2, false],
      [1, true],
    ] as const) {
      await expect(
        runDrop({ ...drop, minting: dying(drop, requests, after), source: piecesOf(text) }),
      ).rejects.toThrow(Killed);
    }
    expect(await runDrop({ ...drop, source: piecesOf(text) })).toMatchObject({
      minted: 50,
      refused: 300,
      unknown: 0,
    });
    expect(lines(drop.result).filter(({ status }) => status === "refused")).toHaveLength(300);
  });

  test("refuses files of another drop, and a result that was cut", async () => {
    const text = `ownerAddress,amount\n${owner(500_000)},5\n`;
    const drop = task(text);
    await runDrop(drop);
    await expect(runDrop({ ...drop, id: dropId("other", {}, "") })).rejects.toThrow(AnotherDrop);
    truncateSync(drop.result, statSync(drop.result).size - 1);
    await expect(runDrop(drop)).rejects.toThrow(AnotherDrop);
  });
});

test("the same rows are the same drop, and another name, asset or mode makes another one", () => {
  const asset = "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a20";
  const same = dropId("d", { assetId: asset }, "");
  expect(dropId("d", { assetId: asset.toUpperCase() }, "")).toBe(same);
  const others = [
    dropId("e", { assetId: asset }, ""),
    dropId("d", {}, ""),
    dropId("d", { assetId: asset }, "may"),
  ];
  others.push(dropId("d", { assetId: asset, dataAvailabilityMode: "validium" }, ""));
  expect(new Set([same, ...others]).size).toBe(5);
  expect(new RequestRefused({ code: "x", detail: "y", issues: [] }).message).toBe("y");
});

describe("metadata of a drop's tokens", () => {
  const reserved = async (contractAddress: `0x${string}`) => {
    const { engine, applicationId } = world;
    const names = { name: "Cards", symbol: "CARD", firstTokenId: 1n };
    const { assetId } = await engine.assets.add({
      standard: "erc721",
      contractAddress,
      ...names,
      applicationId,
    });
    await engine.operator.recordRegistered(assetId);
    return assetId;
  };
  const served = async (assetId: string, tokenId: bigint) =>
    JSON.parse((await world.engine.metadata.served(assetId, tokenId)).json) as unknown;

  test("comes from the columns of a CSV file, or from a field of NDJSON", async () => {
    const assetId = await reserved(`0x${"d1".repeat(20)}`);
    const csv = [
      "ownerAddress,name,image,attribute:Suit,metadata",
      `${owner(1)},One,https://cards.example/1.png,red,"{""edition"":1,""attributes"":[{""trait_type"":""Set"",""value"":2}]}"`,
      `${owner(2)},,,,`,
      "",
    ].join("\n");
    const defaults = { assetId, dataAvailabilityMode: "validium" };
    expect(await runDrop(task(csv, { defaults }))).toMatchObject({ minted: 2, refused: 0 });
    const one = { name: "One", image: "https://cards.example/1.png" };
    expect(await served(assetId, 1n)).toEqual({
      edition: 1,
      ...one,
      attributes: [
        { trait_type: "Set", value: 2 },
        { trait_type: "Suit", value: "red" },
      ],
    });
    await expect(served(assetId, 2n)).rejects.toThrow("no metadata");
    const ndjson = `${JSON.stringify({ ownerAddress: owner(3), metadata: one })}\n`;
    expect(await runDrop(task(ndjson, { defaults, format: "ndjson" }))).toMatchObject({
      minted: 1,
    });
    expect(await served(assetId, 3n)).toEqual(one);
  });

  test.each([
    ["name", `{""name"":""Two""}`, "name is in the metadata cell and in a column; give it once"],
    [
      "attribute:Suit",
      `{""attributes"":[{""trait_type"":""Suit""}]}`,
      'the attribute "Suit" is in',
    ],
    ["number:Suit", `{""attributes"":[null,{""trait_type"":""Suit""}]}`, 'the attribute "Suit" is'],
    ["attribute:Suit", `{""attributes"":{}}`, "the attributes of the metadata cell are not a list"],
  ])("is refused where a column %s and the cell %s clash", async (column, cell, detail) => {
    const csv = `ownerAddress,metadata,${column}\n${owner(1)},"${cell}",7\n`;
    expect((await survey(csv, "csv", world.erc721.assetId)).errors).toMatchObject([
      { row: 2, detail: expect.stringContaining(detail) },
    ]);
  });

  test("is named with its column and row when it is wrong", async () => {
    const assetId = await reserved(`0x${"d2".repeat(20)}`);
    const csv = `ownerAddress,dataAvailabilityMode,image\n${owner(1)},validium,ftp://cards.example/1.png\n`;
    expect((await survey(csv, "csv", assetId)).errors).toMatchObject([
      { row: 2, field: "metadata/image", code: "validation_failed" },
    ]);
    const json = `ownerAddress,metadata\n${owner(1)},[]\n`;
    expect((await survey(json, "csv", assetId)).errors).toMatchObject([
      { row: 2, detail: "metadata is not a JSON object" },
    ]);
  });
});
