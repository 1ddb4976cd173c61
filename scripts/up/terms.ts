import { createInterface, type Interface } from "node:readline/promises";
import { z } from "zod";
import { MAX_MEMBERS } from "../../core/protocol/attestation.ts";
import { address, member } from "../../server/process/settings/fields.ts";
import { tokenSetting } from "../../server/process/settings/process-settings.ts";
import { UsageError } from "../cli/exit.ts";

const MONTH_S = 30 * 86_400;
const seconds = z.int().min(0).max(MONTH_S);

/**
 * An operator decides these once, in the file of `--answers`. `mintmark up` keeps them in its
 * record.
 */
export const answers = z.strictObject({
  /** `solo`: the server is the only member of its committee, and its rollups go into calldata. */
  profile: z.enum(["committee", "solo"]).default("committee"),
  /** Committee members that run from this folder. Others are named under `committee`. */
  members: z.int().min(0).max(MAX_MEMBERS).default(3),
  /** Members that others run, each as `<address>=<url>`. */
  committee: z.array(member).max(MAX_MEMBERS).default([]),
  /** Default: more than half. */
  threshold: z.int().min(1).max(MAX_MEMBERS).optional(),
  admin: address("an address").optional(),
  multisig: address("an address").optional(),
  guardian: address("an address").optional(),
  /** A service that signs in place of a key of this folder, as `<address>=<url>`. */
  signers: z
    .strictObject({ deployer: member, operator: member, receipt: member, watcher: member })
    .partial()
    .default({}),
  /** Default: 7 days and one day, and an hour and a minute on a test network. */
  changeDelaySeconds: seconds.optional(),
  maturitySeconds: seconds.optional(),
  /** Allows a change delay of 0, or a maturity below the chain's finality and ten minutes. */
  allowNoDelay: z.boolean().default(false),
  tokens: z.array(tokenSetting).max(20).default([]),
  /** The application that may mint the tokens. */
  application: z.string().min(1).max(100).default("Application"),
  /** The port of the server; members follow it. */
  port: z.int().min(1).max(60_000).default(3000),
});

export type Answers = z.output<typeof answers>;
/** The form in which the file and the record have the answers. */
export type GivenAnswers = z.input<typeof answers>;

const orNone = <T>(known: z.ZodType<T>) =>
  z.preprocess((text) => (text === "none" ? undefined : text), known.optional());
const standards = z.enum(
  tokenSetting.shape.standard.options,
  "Give erc20, erc721, erc1155 or none.",
);
const yesOrNo = z
  .stringFormat("yes or no", /^(y|yes|n|no)$/i, "Give yes or no.")
  .transform((text) => /^y/i.test(text));
const membersHere = z
  .stringFormat(
    "members",
    (text) => /^\d{1,3}$/.test(text) && Number(text) <= MAX_MEMBERS,
    `Give a number from 0 to ${MAX_MEMBERS}.`,
  )
  .transform(Number);

/**
 * Asks on the terminal what is not obvious. An empty line takes the default; a wrong answer is
 * asked for again.
 */
export function askTerms(signal: AbortSignal, isSolo: boolean): Promise<GivenAnswers> {
  return onTerminal(async (terminal) => {
    const ask = async <T>(question: string, fallback: string, answer: z.ZodType<T>): Promise<T> => {
      const text = (await terminal.question(`${question} [${fallback}] `, { signal })).trim();
      const { success, data, error } = answer.safeParse(text || fallback);
      if (success) return data;
      process.stderr.write(`${error.issues.map(({ message }) => message).join("; ")}\n`);
      return ask(question, fallback, answer);
    };
    const members = isSolo
      ? undefined
      : await ask("How many committee members run from this folder?", "3", membersHere);
    const multisig = await ask(
      "Which multisig administers the contracts? (an address, or none)",
      "none",
      orNone(address("an address, or none")),
    );
    const standard = await ask(
      "Which token to deploy? (erc20, erc721, erc1155 or none)",
      "erc721",
      orNone(standards),
    );
    if (standard === undefined) return { members, multisig, tokens: [] };
    const name = await ask("Its name?", "Swords", tokenSetting.shape.name);
    const symbol = await ask("Its symbol?", "SWRD", tokenSetting.shape.symbol);
    const transferable = await ask(
      "May owners transfer it before a withdrawal? It stays so for ever.",
      "yes",
      yesOrNo,
    );
    return { members, multisig, tokens: [{ standard, name, symbol, transferable }] };
  });
}

export function nobodyAnswers(): UsageError {
  return new UsageError(
    "nobody can answer here: give --yes to spend without a question, and the terms by --answers",
  );
}

/** Asks before money is spent. */
export async function confirm(question: string, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY) throw nobodyAnswers();
  return onTerminal(async (terminal) =>
    /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `, { signal })).trim()),
  );
}

async function onTerminal<T>(ask: (terminal: Interface) => Promise<T>): Promise<T> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // The terminal takes Ctrl-C from the process, and an input that ends would leave a question open.
  const interrupt = () => void process.emit("SIGINT");
  terminal.on("SIGINT", interrupt).once("close", interrupt);
  try {
    return await ask(terminal);
  } finally {
    terminal.off("close", interrupt).close();
  }
}
