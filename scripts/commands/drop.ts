import { createReadStream } from "node:fs";
import { access, rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { MintmarkError } from "../../core/errors.ts";
import * as core from "../../core/internal.ts";
import {
  ApiError,
  answer,
  createClient,
  type MintmarkClient,
  type MintRequest,
  mint,
} from "../../server/client/index.ts";
import { codeOf, refusedForNow } from "../../server/client/retry.ts";
import type { Running } from "../../server/process/operator/operation.ts";
import { clientOf, EXAMPLE_ASSET, OVER_HTTP, textOf } from "../cli/arguments.ts";
import { command, type Given } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";

/** Refused rows shown on a terminal; the result has all. */
const SHOWN = 20;

export const dropCommand = command({
  examples: [
    `drop pieces.csv --asset ${EXAMPLE_ASSET} --dry-run`,
    `drop pieces.csv --asset ${EXAMPLE_ASSET} --mode zk-rollup`,
    "drop points.ndjson --name november --url https://mint.example --key-stdin < api.key",
  ],
  options: {
    "--asset <uuid>": "of rows that name no assetId",
    "--mode <mode>": "validium or zk-rollup, of rows that name no dataAvailabilityMode",
    "--dry-run": "check every row and mint nothing",
    "--name <text>":
      "another name makes the same file another drop, such as each month's; default none",
    "--format <format>": `${core.DROP_FORMATS.join(" or ")}; default by the file's name`,
    "--result <file>": "a line of JSON for each row; default <file>.result.ndjson",
    "--unsure <minted|lost>":
      "what became of rows that were sent more than 23 hours ago and not answered",
    ...OVER_HTTP,
  },
  work: drop,
  failed: ({ refused, unknown, result }: Awaited<ReturnType<typeof drop>>) =>
    refused + unknown === 0 ? null : `not every row is minted; ${result} has a line for each`,
});

async function drop({ options, args: [file = ""], ...running }: Given) {
  await access(file);
  const format = formatOf(options.format, file);
  const unsure =
    options.unsure === undefined
      ? undefined
      : oneOf("--unsure", ["minted", "lost"], options.unsure);
  const { client, ...server } = await clientOf(options);
  // Tries again while the server is away or busy, until the command is stopped.
  const endless = { retries: Number.POSITIVE_INFINITY, maxWaitMs: Number.POSITIVE_INFINITY };
  const patient = createClient({ ...server, ...endless, fetch: telling(running.progress) });
  const limits = await answer(client.GET("/api/v1/limits", { signal: running.signal }));
  const defaults = { assetId: textOf(options.asset), dataAvailabilityMode: textOf(options.mode) };
  const survey = await core.surveyOf(createReadStream(file), format, defaults, limits);
  requireForm(survey);
  const dryRun = options.dryRun === true;
  const result = textOf(options.result) ?? `${file}${dryRun ? ".dry-run" : ".result"}.ndjson`;
  const progress = `${result}.progress`;
  // An earlier check says nothing about the present.
  if (dryRun) await Promise.all([result, progress].map((path) => rm(path, { force: true })));
  const name = textOf(options.name) ?? "";
  const counts = await core.runDrop({
    id: core.dropId(survey.digest, defaults, dryRun ? `dry run of ${name}` : name),
    source: createReadStream(file),
    format,
    defaults,
    minting: mintingOver(patient, dryRun, running.signal),
    result,
    progress,
    unsure,
    signal: running.signal,
    onProgress: ({ minted, mintable, refused, unknown }) => {
      const refusals = refused > 0 ? `, ${refused} refused` : "";
      running.progress(
        `${minted + mintable + refused + unknown} of ${survey.rows} rows${refusals}`,
      );
    },
  });
  const { minted, mintable, refused, unknown } = counts;
  return {
    rows: survey.rows,
    minted,
    mintable,
    refused,
    unknown,
    result,
    refusedRows: await refusedIn(result),
  };
}

function requireForm({ errors, moreErrors: moreIssues }: core.Survey): void {
  if (errors.length === 0) return;
  const code = "validation_failed";
  const issues = errors.map(({ row, ...error }) => {
    return {
      pointer: row === 0 ? "/file" : `/row ${row}`,
      code,
      detail: core.sentenceOf(error),
    } as const;
  });
  const detail = "Nothing was minted. Mend these rows, then run the drop again.";
  throw new MintmarkError(code, detail, { issues, moreIssues });
}

function formatOf(option: unknown, file: string): core.DropFormat {
  const extension = file.slice(file.lastIndexOf(".") + 1).toLowerCase();
  return oneOf(
    "--format",
    core.DROP_FORMATS,
    option ?? (extension === "jsonl" ? "ndjson" : extension),
  );
}

function oneOf<const V extends string>(option: string, values: readonly V[], given: unknown): V {
  const value = values.find((known) => known === given);
  if (value === undefined) throw new UsageError(`${option} must be ${values.join(" or ")}`);
  return value;
}

async function refusedIn(result: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const line of createInterface({ input: createReadStream(result) })) {
    const { row, status, code, detail } = JSON.parse(line) as Readonly<Record<string, unknown>>;
    if (status === "refused" || status === "unknown") found.push({ row, code, detail });
    if (found.length === SHOWN) break;
  }
  return found;
}

/** A `fetch` that says why a request is sent again. */
function telling(progress: Running["progress"]): typeof fetch {
  return async (request) => {
    try {
      const reply = await fetch(request);
      if (await refusedForNow(reply, request as Request))
        progress(`the server answers ${(await codeOf(reply)) ?? reply.status}; trying again`);
      // A proxy answers in the place of a server that is away.
      if (reply.status === 502 || reply.status === 504)
        throw new TypeError(`a proxy answers ${reply.status}`);
      return reply;
    } catch (error) {
      progress("the server does not answer; trying again");
      throw error;
    }
  };
}

function mintingOver(client: MintmarkClient, dryRun: boolean, signal: AbortSignal): core.Minting {
  return {
    async mint(body: object, idempotencyKey) {
      try {
        if (!dryRun) return await mint(client, body as MintRequest, { idempotencyKey, signal });
        const checked = { body: body as MintRequest, params: { query: { dryRun: true } }, signal };
        await answer(client.POST("/api/v1/mint", checked));
        return null;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ApiError)) throw error;
        const { code, detail, errors: issues } = error.problem;
        throw new core.RequestRefused({ code, detail, issues });
      }
    },
  };
}
