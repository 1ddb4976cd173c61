import { figureIn } from "./report.ts";

/** The prices of a unit of gas and of an ether. */
export interface Prices {
  /** Gwei for a unit of L1's gas. */
  readonly l1: number;
  /** Gwei for a unit of blob gas. */
  readonly blob: number;
  /** Dollars for an ether. */
  readonly ether: number;
  /** Gwei for a unit of Base's gas. */
  readonly base: number;
}

/** The floor of Base's price. */
export const BASE_FLOOR = 0.005;
const MINTS = 1_000_000;
const MINTS_IN_SIX_BLOBS = 24_576;
/** Gas of a blob's element, which holds one mint. */
const BLOB_GAS = 32;
/** A blob costs all of its elements, however few hold a mint. */
const ELEMENTS = 4_096;
const MINUTES_OF_A_YEAR = 365 * 24 * 60;
const MINTS_OF_A_MINUTE = "64 ERC-721, each to another owner, random ids";
const EXIT = "ERC-721, owner calls, storage word shared";

/**
 * Compares a million mints, and one exit or claim, in dollars.
 *
 * @param gasPage - the Markdown of docs/gas.md, which has the figures
 * @returns a table in Markdown
 * @throws Error when the page lacks a figure
 */
export function priceTable(gasPage: string, { l1, blob, ether, base }: Prices): string {
  const gas = (section: string, label: string, column = "transaction") =>
    figureIn(gasPage, section, column, label);
  const plain = (label: string) => gas("plain-mints-on-l1-to-compare", label, "gas per mint");
  const calldata = (label: string) => gas("rollup-batches", label, "gas per mint");
  const dollars = (gasUsed: number, gwei: number) => money(gasUsed * gwei * 1e-9 * ether);
  const million = (gasPerMint: number, gwei: number) => dollars(gasPerMint * MINTS, gwei);
  const inBlobs =
    gas("rollup-batches-in-blobs", "24,576 mints in six blobs") / MINTS_IN_SIX_BLOBS +
    (BLOB_GAS * blob) / l1;
  const least = calldata("1,024 ERC-721, one owner, random ids");
  const most = calldata("1,024 ERC-20, each to another owner, amounts of 8 bytes");
  const validium = gas("validium-batches", "3 of 5 signatures");
  const exit = gas("withdrawals", EXIT);
  const many = plain("ERC-721, 100 at once, each to a new owner");
  const ownRun = "server, RPC, watcher";
  const rows = [
    ["", "a million mints", "one exit or claim", "you trust", "in wallets", "you run"],
    ["---", "---:", "---:", "---", "---", "---"],
    [
      "**Mintmark on L1, in blobs**",
      million(inBlobs, l1),
      dollars(gas("withdrawals-from-blobs", EXIT), l1),
      "L1, and after 18 days an archive of blobs",
      "after the exit",
      ownRun,
    ],
    [
      "**Mintmark on Base, in calldata**",
      `${million(least, base)} to ${million(most, base)}`,
      dollars(exit, base),
      "Base",
      "after the exit",
      ownRun,
    ],
    [
      "**Mintmark on Base, as validium**",
      dollars(validium, base),
      dollars(exit, base),
      "Base, and a committee for data",
      "after the exit",
      `${ownRun}, members`,
    ],
    [
      "ERC-721 minted on Base, 100 a transaction",
      million(many, base),
      "none",
      "Base",
      "at once",
      "a script",
    ],
    [
      "ERC-1155 minted on Base, one a transaction",
      million(plain("ERC-1155, new owner"), base),
      "none",
      "Base",
      "at once",
      "a script",
    ],
    [
      "ERC-1155 minted on Base, 100 ids at once to one owner",
      million(plain("ERC-1155, 100 ids at once, one owner"), base),
      "none",
      "Base",
      "at once",
      "a script",
    ],
    [
      "ERC721A on Base, 100 at once to one owner",
      million(plain("ERC721A, 100 at once, one owner"), base),
      "none",
      "Base",
      "at once",
      "a script",
    ],
    [
      "Merkle claim of an ERC-721 on Base",
      dollars(plain("The root of all claims"), base),
      dollars(plain("ERC-721, claimed by a Merkle proof, new owner"), base),
      "the issuer until the root, then Base",
      "after the claim",
      "a page for claims",
    ],
    [
      "Merkle claim of an ERC-20 on Base",
      dollars(plain("The root of all claims"), base),
      dollars(plain("ERC-20, claimed by a Merkle proof, new holder"), base),
      "the issuer until the root, then Base",
      "after the claim",
      "a page for claims",
    ],
  ];
  return rows.map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/**
 * A year of batches, one each minute, in dollars. A batch costs the same however few mints it
 * holds, but for one in calldata, which is taken for 64 mints.
 *
 * @param gasPage - the Markdown of docs/gas.md, which has the figures
 * @throws Error when the page lacks a figure
 */
export function yearOfMinutes(gasPage: string, { l1, blob, ether, base }: Prices) {
  const oneBlob = figureIn(
    gasPage,
    "rollup-batches-in-blobs",
    "transaction",
    "4,096 mints in one blob",
  );
  const validium = figureIn(gasPage, "validium-batches", "transaction", "3 of 5 signatures");
  const calldata = figureIn(gasPage, "rollup-batches", "transaction", MINTS_OF_A_MINUTE);
  const year = (gwei: number) => money(gwei * 1e-9 * ether * MINUTES_OF_A_YEAR);
  return {
    blobs: year(oneBlob * l1 + BLOB_GAS * ELEMENTS * blob),
    validium: year(validium * base),
    calldata: year(calldata * base),
  };
}

/** Two significant digits, and all digits of whole dollars. */
function money(dollars: number): string {
  if (dollars >= 100) return `$${Math.round(dollars).toLocaleString("en")}`;
  const [, exponent = "0"] = dollars.toExponential(1).split("e");
  return `$${dollars.toFixed(Math.max(0, 1 - Number(exponent)))}`;
}
