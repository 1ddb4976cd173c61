import { existsSync } from "node:fs";
import { mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { MintmarkError } from "../../core/errors.ts";
import type { Address } from "../../core/index.ts";
import { ApiError, answer, type MintEntry } from "../../server/client/index.ts";
import type { Running } from "../../server/process/operator/operation.ts";
import { clientOf, EXAMPLE_ASSET, OVER_HTTP, textOf } from "../cli/arguments.ts";
import { command, type Options } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";

const HEADER = "number,link,linkAddress";
const MOST_LINKS = 100_000;

export const claimLinksCommand = command({
  examples: [
    `claim-links --asset ${EXAMPLE_ASSET} --count 200 --out links.csv --qr codes`,
    `claim-links --asset ${EXAMPLE_ASSET} --count 200 --first-token 1001 --expires 2026-12-01T00:00:00Z --out seats.csv`,
    `claim-links --asset ${EXAMPLE_ASSET} --count 50 --amount 12.5 --out points.csv --url https://mint.example`,
  ],
  required: {
    "--asset <uuid>": "what each link mints",
    "--count <number>": "number of links",
    "--out <file>": "CSV of the links, which are secret: whoever has one can claim",
  },
  options: {
    "--qr <folder>": "write an SVG for each link here",
    "--first-token <id>": "ERC-721: the first link mints this id, each later one the next",
    "--token <id>": "ERC-1155: every link mints this id",
    "--amount <decimal>": "ERC-20: what each link mints; ERC-1155: how many, default 1",
    "--mode <mode>": "validium or zk-rollup; default the asset's or the application's",
    "--expires <time>": "when the links end, such as 2026-12-01T00:00:00Z; default never",
    "--page <url>": "the address of the server for holders, if it is another than --url",
    ...OVER_HTTP,
  },
  flags: { assetId: "--asset", expiresAt: "--expires" },
  async work({ options, signal, progress }) {
    const count = Number(options.count);
    if (!Number.isInteger(count) || count < 1 || count > MOST_LINKS)
      throw new UsageError(`--count must be a whole number from 1 to ${MOST_LINKS}`);
    const { baseUrl, client } = await clientOf(options);
    const { MAX_NEW_CLAIMS } = await import("../../core/claims/claims.ts");
    const page = new URL("/claim", textOf(options.page) ?? baseUrl);
    const mintOf = entryOf(options);
    const out = String(options.out);
    // Links are on disk before the server hears of them: a link that nobody has could never be
    // claimed.
    const isNew = !existsSync(out);
    const links = isNew
      ? await writeLinks(out, await newLinks(page, count))
      : await readLinks(out, count);
    const expiresAt = textOf(options.expires) ?? null;
    for (let first = 0; first < count; first += MAX_NEW_CLAIMS) {
      const part = links.slice(first, first + MAX_NEW_CLAIMS);
      const claims = part.map(({ linkAddress }, i) => ({
        linkAddress,
        mint: mintOf(first + i),
        expiresAt,
      }));
      try {
        await answer(client.POST("/api/v1/claims", { body: { claims }, signal }));
      } catch (error) {
        // The server refused the very first links, so nobody can ever use one of these.
        if (isNew && first === 0 && error instanceof ApiError && error.status < 500) await rm(out);
        throw error;
      }
      progress(`${first + part.length} of ${count} links`);
    }
    const qr = textOf(options.qr) ?? null;
    if (qr !== null) await writeCodes(qr, links, { signal, progress });
    return { links: count, out, qr };
  },
});

interface Link {
  readonly link: string;
  readonly linkAddress: Address;
}

function entryOf({
  asset,
  firstToken,
  token,
  amount,
  mode,
}: Options): (index: number) => MintEntry {
  if (firstToken !== undefined && token !== undefined)
    throw new UsageError("give --first-token or --token, not both");
  if (firstToken !== undefined && !/^\d{1,77}$/.test(String(firstToken)))
    throw new UsageError("--first-token must be a whole number");
  const given = mode as NonNullable<MintEntry["dataAvailabilityMode"]>;
  const common = {
    assetId: String(asset),
    ...(mode !== undefined && { dataAvailabilityMode: given }),
  };
  if (firstToken !== undefined) {
    const first = BigInt(String(firstToken));
    return (index) => ({ ...common, tokenId: String(first + BigInt(index)) });
  }
  const item = { tokenId: String(token), amount: String(amount ?? 1) };
  const units = amount === undefined ? {} : { amountDecimal: String(amount) };
  const entry = { ...common, ...(token === undefined ? units : item) };
  return () => entry;
}

async function newLinks(page: URL, count: number): Promise<Link[]> {
  const { generatePrivateKey, privateKeyToAddress } = await import("viem/accounts");
  return Array.from({ length: count }, () => {
    const key = generatePrivateKey();
    const link = new URL(page);
    link.hash = Buffer.from(key.slice(2), "hex").toString("base64url");
    return { link: link.href, linkAddress: privateKeyToAddress(key) };
  });
}

/** Writes new links durably, for their owner's eyes only. */
async function writeLinks(path: string, links: readonly Link[]): Promise<readonly Link[]> {
  const lines = links.map(({ link, linkAddress }, i) => `${i + 1},${link},${linkAddress}`);
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(`${[HEADER, ...lines].join("\n")}\n`);
  await file.sync();
  return links;
}

/** The links of an earlier run, which may have been stopped. */
async function readLinks(path: string, count: number): Promise<readonly Link[]> {
  const [header, ...lines] = (await readFile(path, "utf8")).split("\n");
  const links = lines.slice(0, -1).map((line) => {
    const [, link = "", linkAddress = ""] = line.split(",");
    return { link, linkAddress: linkAddress as Address };
  });
  if (header === HEADER && links.length === count && lines.at(-1) === "") return links;
  throw new MintmarkError(
    "validation_failed",
    `${path} exists and does not hold ${count} links. Name another file; delete this one only if its links are lost.`,
  );
}

async function writeCodes(
  folder: string,
  links: readonly Link[],
  { signal, progress }: Running,
): Promise<void> {
  // Loaded only for codes, so other commands start without it.
  const { renderSVG } = await import("uqr");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const digits = String(links.length).length;
  for (const [i, { link }] of links.entries()) {
    signal.throwIfAborted();
    const name = `${String(i + 1).padStart(digits, "0")}.svg`;
    await writeFile(join(folder, name), renderSVG(link, { ecc: "M", border: 4 }), { mode: 0o600 });
    if (i % 100 === 99) progress(`${i + 1} of ${links.length} codes`);
  }
}
