import { Readable } from "node:stream";
import { z } from "zod";
import { type Drops, MintmarkError } from "../../core/index.ts";
import { ServerError } from "../http/errors.ts";
import { idOfRequest } from "../http/idempotency-key.ts";
import { endedEarly } from "../http/turns.ts";
import type { Service } from "../service.ts";
import { type Endpoint, endpoint, json, ROWS } from "./api/endpoint.ts";
import { askedMode, flag, outTime, outUuid, responseComponent, uuid } from "./api/fields.ts";

const dropQuery = z.strictObject({
  assetId: uuid.optional().describe("This applies to rows that name none."),
  dataAvailabilityMode: askedMode.optional().describe("This applies to rows that name none."),
  dryRun: flag.optional().describe("`true` checks every row and mints nothing."),
  unsure: z
    .enum(["minted", "lost"])
    .optional()
    .describe("The answer to `drop_unsure`: what became of the rows that its `detail` names."),
});

const drop = responseComponent("Drop", {
  dropId: outUuid,
  status: z.enum(["queued", "running", "done", "failed", "stopped"]),
  dryRun: z.boolean(),
  rows: z.int().describe("Rows of the drop."),
  minted: z.int().describe("Rows that are minted; 0 with `dryRun`."),
  mintable: z.int().describe("Rows that `dryRun` found good; 0 without it."),
  refused: z.int().describe("Rows that are not minted; the result says why."),
  unknown: z.int().describe("Rows that an earlier upload of the same drop minted or refused."),
  failure: z
    .strictObject({ code: z.string(), detail: z.string() })
    .nullable()
    .describe(
      "Why it failed: an error's code, or `drop_unsure`. Upload the same rows again to go on.",
    ),
  createdAt: outTime,
  finishedAt: outTime.nullable(),
});

const PATH = "/api/v1/drops";
/** Units of any upload: its files and its first rows take a core for 3 ms. */
const UPLOAD_UNITS = 500;
/** Bytes of rows, and of a result, that cost one unit of rate. */
const ROWS_UNIT = 1024;
const RESULT_UNIT = 1024 * 1024;
const MAX_BYTES = 256 * 1024 * 1024;

export const dropEndpoints: readonly Endpoint[] = [
  endpoint("Drops", "mint", `POST ${PATH}`, "createDrop", {
    summary: "Mint the rows of a CSV or NDJSON file, up to a million, in the background",
    description:
      "Each row has the fields of a mint's entry, and `ownerAddress` or `userId`. A row of a wrong form refuses the whole drop. Rows that the engine refuses are left out, and the result says why. The same rows again are the same drop. With an Idempotency-Key, the key names the drop.",
    query: dropQuery,
    bodyStream: ROWS,
    example: "ownerAddress,tokenId\n0x7070707070707070707070707070707070707070,1001\n",
    success: json(202, "The rows are on disk and will be minted.", drop),
    errors: ["drop_invalid", "too_many_drops", "uploads_full", "drops_unavailable"],
    async handle({ engine, service: { drops }, principal, query, request, reply }) {
      const { dryRun = false, unsure, ...defaults } = query;
      const isCsv = /^text\/csv\b/i.test(request.headers["content-type"] ?? "");
      const format = isCsv ? ("csv" as const) : ("ndjson" as const);
      const id = idOfRequest("dropId", principal, request);
      const onBytes = (total: number) => {
        if (total > MAX_BYTES) throw new ServerError("body_too_large");
        request.account?.pay(Math.max(UPLOAD_UNITS, Math.ceil(total / ROWS_UNIT)));
      };
      const onRows = (total: number) => {
        if (reply.raw.destroyed) throw endedEarly();
        request.account?.rows(total);
      };
      const rows = (request.body as Readable | undefined) ?? Readable.from([]);
      const upload = { format, defaults, dryRun, unsure, engine, onBytes, onRows, ...id };
      try {
        if (drops === null) throw new ServerError("drops_unavailable");
        onBytes(Number(request.headers["content-length"] ?? 0));
        // An early refusal must not break the connection that carries it.
        const pieces = rows.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
        const { job, replayed } = await drops.upload(principal, upload, pieces);
        if (replayed) reply.header("idempotency-replayed", "true");
        return job;
      } catch (error) {
        // The connection broke, so nobody reads this response.
        if (rows.errored === error)
          throw new ServerError("malformed_request", "The body ended early.");
        throw error;
      } finally {
        rows.resume();
      }
    },
  }),
  endpoint("Drops", "read", `GET ${PATH}`, "listDrops", {
    summary: "Drops of the application, newest first",
    success: json(
      200,
      "Unfinished drops, and the last twenty finished ones.",
      responseComponent("DropList", { data: z.array(drop) }),
    ),
    handle: async ({ service: { drops }, applicationId }) => ({
      data: (await drops?.list(applicationId)) ?? [],
    }),
  }),
  endpoint("Drops", "read", `GET ${PATH}/{dropId}`, "getDrop", {
    summary: "One drop and its progress",
    success: json(200, "The drop.", drop),
    handle: async ({ service, applicationId, params }) =>
      dropsOf(service).get(applicationId, params.dropId),
  }),
  endpoint("Drops", "mint", `DELETE ${PATH}/{dropId}`, "deleteDrop", {
    summary: "Stop a drop; its mints stay",
    success: json(200, "The drop as it stopped.", drop),
    handle: async ({ service, applicationId, params }) =>
      dropsOf(service).stop(applicationId, params.dropId),
  }),
  endpoint("Drops", "read", `GET ${PATH}/{dropId}/result`, "getDropResult", {
    summary: "A line of JSON for each finished row",
    success: {
      status: 200,
      description: "The rows, in the order of the file.",
      mediaType: "application/x-ndjson",
    },
    async handle({ service, applicationId, params, request, reply }) {
      const { bytes, lines } = await dropsOf(service).result(applicationId, params.dropId);
      request.account?.pay(Math.ceil(bytes / RESULT_UNIT));
      reply.type("application/x-ndjson");
      return lines;
    },
  }),
];

/** A server that takes no drops knows none. */
function dropsOf({ drops }: Service): Drops {
  if (drops === null) throw new MintmarkError("drop_not_found");
  return drops;
}
