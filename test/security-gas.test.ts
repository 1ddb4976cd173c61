import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { withFigures } from "../bench/gas/report.ts";

const ROOT = new URL("../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");
const GAS_PAGE = read("docs/gas.md");
const SECURITY = read("docs/security.md");
/** Links to figures with these already taken out. */
const UNLINKED = SECURITY.replace(/\[[^\]]*\]\(gas\.md[^)]*\)/g, "");

it.each(readdirSync(new URL("docs", ROOT)).filter((name) => name.endsWith(".md")))(
  "the figures in docs/%s are those of docs/gas.md (npm run gas writes them)",
  (name) => {
    const page = read(`docs/${name}`);
    expect(page).toBe(withFigures(page, GAS_PAGE));
  },
);

it("the figures in docs/security.md follow docs/gas.md, by section, column and row", () => {
  const section = (title: string, figure: string) =>
    `## ${title}\n\nWhy.\n\n|  | transaction | gas per mint |\n| --- | ---: | ---: |\n| two mints | ${figure} | 7 |\n`;
  const gasPage = section("In blobs", "1,400") + section("In calldata", "2,600");
  const link = (figure: string, anchor: string, title: string) =>
    `[${figure}](gas.md#${anchor} "${title}")`;
  expect(withFigures(link("0", "in-calldata", "transaction: two mints"), gasPage)).toBe(
    link("2,600", "in-calldata", "transaction: two mints"),
  );
  expect(withFigures(link("1,234", "in-blobs", "gas per mint: two mints"), gasPage)).toBe(
    link("7", "in-blobs", "gas per mint: two mints"),
  );
  for (const title of ["gas per batch: two mints", "transaction: three mints"])
    expect(() => withFigures(link("0", "in-blobs", title), gasPage)).toThrow(title);
});

it("the shares of withdrawn vaults up to which blobs cost less follow from the figures", () => {
  const [least, most, inBlobs, , , fromTree, fromBlobs] = [
    ...SECURITY.matchAll(/\[([\d,]+)\]\(gas\.md/g),
  ].map(([, figure = ""]) => Number(figure.replaceAll(",", "")));
  const share = (inCalldata = NaN) =>
    (
      (100 * (inCalldata - (inBlobs ?? NaN) - 32)) /
      ((fromBlobs ?? NaN) - (fromTree ?? NaN))
    ).toFixed(1);
  expect(SECURITY.replaceAll("\n", " ")).toContain(
    `fewer than ${share(least)} % of the vaults (${share(most)} %, where calldata takes the most)`,
  );
});

it("docs/security.md has no other gas than its figures and the constants of Ethereum and the contracts", () => {
  const [consent = ""] =
    /(?<=CONSENT_GAS = )[\d_]+/.exec(read("contracts/state/Commits.sol")) ?? [];
  const constants = [
    "50,000 gas", // The point evaluation precompile of EIP-4844
    "131,072 blob gas", // A blob
    "32 blob gas", // An element of it
    `${consent.replace("_", ",")} gas`,
  ];
  const found = [...UNLINKED.matchAll(/\d[\d,.]*\s(?:blob )?gas/g)].map(([text]) =>
    text.replace("\n", " "),
  );
  expect([...new Set(found)].toSorted()).toEqual(constants.toSorted());
  expect(SECURITY.match(/\]\(gas\.md#/g)?.length).toBeGreaterThan(10);
});
