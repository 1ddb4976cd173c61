import { PassThrough } from "node:stream";
import { afterEach, expect, test, vi } from "vitest";
import { checkTerms } from "../../scripts/deploy/check.ts";
import type { Deployer } from "../../scripts/deploy/deployer.ts";
import { planOf } from "../../scripts/up/deploying.ts";
import { answers, askTerms } from "../../scripts/up/terms.ts";

afterEach(() => vi.restoreAllMocks());

/** Types a line after each question, and answers what the terminal has shown. */
function typing(...lines: readonly string[]): { readonly shown: readonly string[] } {
  const stdin = new PassThrough();
  vi.spyOn(process, "stdin", "get").mockReturnValue(stdin as never);
  const shown: string[] = [];
  const left = [...lines];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    shown.push(String(text));
    if (String(text).endsWith("] "))
      setImmediate(() => (left.length > 0 ? stdin.write(`${left.shift()}\n`) : stdin.end()));
    return true;
  });
  return { shown };
}

test("asks whether the token is transferable, and asks again for a wrong answer", async () => {
  const { shown } = typing("many", "2", "", "erc9", "erc721", "", "", "perhaps", "");
  const given = await askTerms(new AbortController().signal, false);
  const token = { standard: "erc721", name: "Swords", symbol: "SWRD", transferable: true };
  expect(given).toEqual({ members: 2, multisig: undefined, tokens: [token] });
  expect(answers.parse(given)).toMatchObject({ members: 2, tokens: [token] });
  expect(shown.join("")).toMatch(/May owners transfer it .+ for ever\. \[yes\]/);
});

test("a wrong answer is told what is wanted, question by question", async () => {
  const hex = `0xd8da6bf26964af9d7eed9e03e53415d37aa9604${"5"}`;
  const wrong = ["three", "65", "1.5", "", "0x12", hex.replace("d8da", "D8da"), ""];
  const { shown } = typing(...wrong, "erc-721", "", "", "", "perhaps", "");
  await askTerms(new AbortController().signal, false);
  expect(shown.filter((text) => !text.includes("["))).toEqual([
    ...Array(3).fill("Give a number from 0 to 64.\n"),
    "Give an address, or none.\n",
    expect.stringMatching(/checksum/),
    "Give erc20, erc721, erc1155 or none.\n",
    "Give yes or no.\n",
  ]);
});

test("asks a server that runs alone for no members", async () => {
  const { shown } = typing("none", "erc1155", "Potions", "PTN", "");
  expect(await askTerms(new AbortController().signal, true)).toMatchObject({
    tokens: [{ standard: "erc1155", symbol: "PTN", transferable: true }],
  });
  expect(shown.join("")).not.toMatch(/members/);
});

test("an input that ends is an interruption, and no open question", async () => {
  const stopping = new AbortController();
  const interrupted = () => stopping.abort(new Error("interrupted"));
  process.once("SIGINT", interrupted);
  typing("3");
  await expect(askTerms(stopping.signal, false)).rejects.toThrow();
  expect(stopping.signal.aborted).toBe(true);
  process.off("SIGINT", interrupted);
});

test("no delay is allowed by the answers that its refusal names", () => {
  const account = { address: `0x${"01".repeat(20)}` };
  const by = { chainId: 1, account } as unknown as Deployer;
  const accounts = { signers: { operator: account }, members: [account] } as never;
  const check = (given: object) =>
    checkTerms(by, planOf(by, answers.parse({ changeDelaySeconds: 0, ...given }), accounts, false));
  expect(() => check({})).toThrow('Give "allowNoDelay": true in the file of --answers');
  expect(check({ allowNoDelay: true })).toEqual([expect.stringContaining("the change delay is 0")]);
});
