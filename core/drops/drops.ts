import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setImmediate, setTimeout } from "node:timers/promises";
import { Turns } from "../at-once.ts";
import { MintmarkError } from "../errors.ts";
import type { Principal } from "../model.ts";
import { hashUuid } from "../store/binary.ts";
import {
  type DropEngine,
  type DropTask,
  dropId,
  engineMinting,
  hasEnded,
  type Pace,
  RequestRefused,
  runDrop,
  UnsureOutcome,
} from "./drop.ts";
import { type Counts, NO_ROWS } from "./progress.ts";
import { type DropFormat, sentenceOf } from "./rows.ts";
import { SurveyThread } from "./survey-thread.ts";
import type { DropDefaults, Survey } from "./windows.ts";

/** Most unfinished drops of one application, and most uploads at once. */
const MAX_UNFINISHED = 10;
/** Default of the most bytes of all uploads in progress. */
const MAX_UPLOADING_BYTES = 2 * 1024 ** 3;
/**
 * Most bytes that an upload sends in a millisecond. From a client on a fast network, a file of tens
 * of MB would otherwise take the event loop and the disk for a second.
 */
const MOST_BYTES_A_MS = 16_000;
/** Most finished drops kept of one application; the oldest is deleted first. */
const MAX_KEPT = 20;

/** A drop and its progress. */
export interface DropJob extends Counts {
  readonly dropId: string;
  readonly applicationId: string;
  readonly status: "queued" | "running" | "done" | "failed" | "stopped";
  readonly dryRun: boolean;
  readonly rows: number;
  /** The reason of a failure. */
  readonly failure: { readonly code: string; readonly detail: string } | null;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly finishedAt: number | null;
}

/** The facts that resume a drop. */
interface Job extends DropJob {
  /** Determines its idempotency keys. */
  readonly id: string;
  readonly keyId: string;
  readonly scopes: Principal["scopes"];
  readonly format: DropFormat;
  readonly defaults: DropDefaults;
}

/** An upload's format, and how its rows are minted. */
export interface DropUpload {
  readonly format: "csv" | "ndjson";
  /** Defaults of rows without their own. */
  readonly defaults: DropDefaults;
  /** Checks every row and mints nothing. Default false. */
  readonly dryRun?: boolean;
  /**
   * The fate of rows that were sent more than 23 hours ago and not answered. Without it such a drop
   * fails with the code `drop_unsure`.
   */
  readonly unsure?: "minted" | "lost" | undefined;
  /**
   * Default: the id that follows from the rows and defaults. The same id with other rows is
   * refused.
   */
  readonly dropId?: string;
  /**
   * Mints in the uploader's name. After a restart the drop's key alone does. Default: the engine of
   * the drops.
   */
  readonly engine?: DropEngine;
  /**
   * Called with the bytes received so far. An error that it throws refuses the drop. Default: no
   * call.
   */
  readonly onBytes?: (total: number) => void;
  /**
   * Called with the rows read so far, about ten times a second and at the end. An error that it
   * throws refuses the drop. Default: no call.
   */
  readonly onRows?: (total: number) => void;
}

interface Uploaded {
  readonly job: DropJob;
  /** Whether an earlier upload created it. */
  readonly replayed: boolean;
}

/** An application's uploads in progress, and their bytes on disk. */
interface Uploading {
  uploads: number;
  bytes: number;
}

/** Options of {@link Drops}. */
export interface DropsOptions {
  /** The folder of drops; it outlives the process. Created when missing. */
  readonly folder: string;
  readonly engine: DropEngine;
  /** Waits for rate limits and turns. Default: one pass of the event loop. */
  readonly pace?: Pace;
  /**
   * Most bytes on disk of all uploads in progress. Those of one application take half of it at
   * most. Default: 2 GiB.
   */
  readonly uploadingBytes?: number;
  /** Called with an error of this process. */
  readonly onError: (error: unknown) => void;
}

/**
 * Drops: files of up to a million rows, minted in the background. Each has its own folder: its
 * description, its rows until it ends, its result and its progress. An application's drops run one
 * after another. A restart resumes them.
 *
 * @example
 * await using drops = new Drops({ folder: "./drops", engine, onError: console.error }); await
 * drops.start(); const asked = { format: "csv", defaults: { assetId, dataAvailabilityMode:
 * "validium" } } as const; const { job } = await drops.upload(principal, asked,
 * createReadStream("pieces.csv")); console.log(await drops.get(job.applicationId, job.dropId));
 */
export class Drops implements AsyncDisposable {
  readonly #options: DropsOptions;
  readonly #pace: Pace;
  readonly #jobs = new Map<string, Job>();
  /** The ids of each application's drops. */
  readonly #ids = new Map<string, Set<string>>();
  /** Running and waiting drops, by id. */
  readonly #runs = new Map<
    string,
    { readonly stop: AbortController; readonly end: Promise<void> }
  >();
  /** Uploads in progress, by application. */
  readonly #uploading = new Map<string, Uploading>();
  readonly #uploads = new Set<Promise<unknown>>();
  readonly #surveys = new SurveyThread();
  /** Settles when the application's last drop ends. */
  readonly #ends = new Map<string, Promise<void>>();
  /** Changes by requests, one after another for each application. */
  readonly #changes = new Map<string, Turns>();
  readonly #closing = new AbortController();
  #loaded: Promise<void> | undefined;

  constructor(options: DropsOptions) {
    this.#options = options;
    this.#pace = options.pace ?? (() => setImmediate());
  }

  /** Resumes the unfinished drops of an earlier process. */
  async start(): Promise<void> {
    await this.#load();
    // A request can upload a drop before this: it has its run already.
    const unfinished = [...this.#jobs.values()].filter(
      (job) => isUnfinished(job) && !this.#runs.has(job.dropId),
    );
    for (const job of unfinished.sort((a, b) => a.createdAt - b.createdAt)) this.#run(job);
  }

  /** Ends after the requests in progress. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#surveys[Symbol.asyncDispose]();
    await Promise.all([...this.#uploads, ...this.#ends.values()]);
  }

  /**
   * Accepts rows, and then mints them. The same rows again are the same drop; a failed or stopped
   * one resumes. Throws `drop_invalid`, `too_many_drops`, `uploads_full`, `idempotency_key_reused`.
   * Rows of a wrong form end the upload before its last byte.
   */
  async upload(
    principal: Principal,
    upload: DropUpload,
    source: AsyncIterable<Uint8Array>,
  ): Promise<Uploaded> {
    const taken = this.#upload(principal, upload, source);
    const end = Promise.allSettled([taken]);
    this.#uploads.add(end);
    void end.then(() => this.#uploads.delete(end));
    return taken;
  }

  async #upload(
    principal: Principal,
    upload: DropUpload,
    source: AsyncIterable<Uint8Array>,
  ): Promise<Uploaded> {
    await this.#load();
    const { applicationId } = principal;
    const own = this.#uploading.get(applicationId) ?? { uploads: 0, bytes: 0 };
    if (own.uploads >= MAX_UNFINISHED) throw new MintmarkError("too_many_drops");
    this.#uploading.set(applicationId, own);
    own.uploads++;
    let bytes = 0;
    const hold = (more: number) => {
      this.#requireRoom(own, more);
      own.bytes += more;
      bytes += more;
    };
    const draft = join(this.#options.folder, `${randomUUID()}${DRAFT}`);
    try {
      await mkdir(draft, { recursive: true });
      const survey = await this.#receive(join(draft, ROWS), applicationId, upload, source, hold);
      // One after another, so the same rows twice at once are one drop.
      return await this.#alone(applicationId, () => this.#take(principal, upload, survey, draft));
    } finally {
      await rm(draft, { recursive: true, force: true });
      own.uploads--;
      own.bytes -= bytes;
      if (own.uploads === 0) this.#uploading.delete(applicationId);
    }
  }

  /** Throws `uploads_full` when an application's uploads in progress may have no more bytes. */
  #requireRoom(own: Uploading, more: number): void {
    const most = this.#options.uploadingBytes ?? MAX_UPLOADING_BYTES;
    let all = more;
    for (const { bytes } of this.#uploading.values()) all += bytes;
    if (all > most || own.bytes + more > most / 2) throw new MintmarkError("uploads_full");
  }

  /** Turns a draft into a queued drop, unless one with these rows is queued, running or done. */
  async #take(
    principal: Principal,
    upload: DropUpload,
    { digest, rows }: Survey,
    draft: string,
  ): Promise<Uploaded> {
    const { applicationId, keyId, scopes } = principal;
    const { format, defaults, dryRun = false, unsure, engine } = upload;
    const id = dropId(
      digest,
      defaults,
      `${applicationId} ${upload.dropId ?? ""}${dryRun ? " dry run" : ""}`,
    );
    const earlier = this.#jobs.get(upload.dropId ?? hashUuid(id));
    if (earlier !== undefined && earlier.id !== id)
      throw new MintmarkError("idempotency_key_reused");
    if (earlier !== undefined && (isUnfinished(earlier) || earlier.status === "done"))
      return { job: earlier, replayed: true };
    if (this.#of(applicationId).filter(isUnfinished).length >= MAX_UNFINISHED)
      throw new MintmarkError("too_many_drops");
    const created = { ...NO_ROWS, dropId: upload.dropId ?? hashUuid(id), createdAt: Date.now() };
    const job: Job = {
      ...(earlier ?? created),
      ...{ id, applicationId, keyId, scopes, format, defaults, dryRun, rows },
      status: "queued",
      failure: null,
      finishedAt: null,
    };
    await writeJob(draft, job);
    const place = this.#place(job);
    if (earlier === undefined) await rename(draft, place);
    // The rows first, because a running drop needs them.
    else for (const file of [ROWS, JOB]) await rename(join(draft, file), join(place, file));
    this.#keep(job);
    this.#run(job, engine, unsure);
    await this.#forget(applicationId);
    return { job, replayed: false };
  }

  /** Newest first. */
  async list(applicationId: string): Promise<readonly DropJob[]> {
    await this.#load();
    return this.#of(applicationId);
  }

  /** Throws `drop_not_found`. */
  async get(applicationId: string, dropId: string): Promise<DropJob> {
    return this.#find(applicationId, dropId);
  }

  /** The lines of all finished rows, and their length. Throws `drop_not_found`. */
  async result(
    applicationId: string,
    dropId: string,
  ): Promise<{ readonly bytes: number; readonly lines: Readable }> {
    const job = await this.#find(applicationId, dropId);
    const path = join(this.#place(job), RESULT);
    const { bytes } = job;
    return {
      bytes,
      lines: bytes === 0 ? Readable.from([]) : createReadStream(path, { end: bytes - 1 }),
    };
  }

  /**
   * Stops a queued drop at once, a running one between two requests. Its mints stay. Throws
   * `drop_not_found`.
   */
  stop(applicationId: string, dropId: string): Promise<DropJob> {
    return this.#alone(applicationId, async () => {
      const job = await this.#find(applicationId, dropId);
      const run = this.#runs.get(job.dropId);
      run?.stop.abort(new Error("the drop was stopped"));
      if (job.status === "queued") {
        // Its turn comes only after the drops before it, which can take hours.
        this.#runs.delete(job.dropId);
        await this.#finish(job, "stopped", null);
      } else await run?.end;
      return this.#find(applicationId, dropId);
    });
  }

  #of(applicationId: string): readonly Job[] {
    const ids = [...(this.#ids.get(applicationId) ?? [])];
    const own = ids.flatMap((dropId) => this.#jobs.get(dropId) ?? []);
    return own.sort((a, b) => b.createdAt - a.createdAt);
  }

  #keep(job: Job): void {
    this.#jobs.set(job.dropId, job);
    const ids = this.#ids.get(job.applicationId) ?? new Set();
    this.#ids.set(job.applicationId, ids.add(job.dropId));
  }

  /** Changes of an application's drops by requests, one after another. */
  #alone<T>(applicationId: string, change: () => Promise<T>): Promise<T> {
    const turns = this.#changes.get(applicationId) ?? new Turns();
    this.#changes.set(applicationId, turns);
    return turns.run(change);
  }

  #place({ dropId }: Pick<Job, "dropId">): string {
    return join(this.#options.folder, dropId);
  }

  async #find(applicationId: string, dropId: string): Promise<Job> {
    await this.#load();
    const job = this.#jobs.get(dropId.toLowerCase());
    if (job?.applicationId !== applicationId) throw new MintmarkError("drop_not_found");
    return job;
  }

  #load(): Promise<void> {
    this.#loaded ??= this.#read(this.#options.folder);
    return this.#loaded;
  }

  async #read(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    for (const name of await readdir(folder)) {
      const place = join(folder, name);
      if (name.endsWith(DRAFT)) await rm(place, { recursive: true, force: true });
      else await this.#readJob(place).catch(this.#options.onError);
    }
  }

  async #readJob(place: string): Promise<void> {
    const job = { ...NO_ROWS, ...(JSON.parse(await readFile(join(place, JOB), "utf8")) as Job) };
    this.#keep(isUnfinished(job) ? { ...job, status: "queued" } : job);
    if (!isUnfinished(job)) await rm(join(place, ROWS), { force: true });
  }

  /**
   * Writes the rows to disk, while a thread reads them behind. The time that a client has to send
   * them must not depend on what else this process does, so the reading never delays them; but once
   * it has ended, for a fault, no more of them are taken.
   *
   * @param hold - called with each number of bytes, before they are written
   */
  async #receive(
    path: string,
    applicationId: string,
    { format, defaults, onBytes, onRows }: DropUpload,
    source: AsyncIterable<Uint8Array>,
    hold: (bytes: number) => void,
  ): Promise<Survey> {
    await using file = await open(path, "wx");
    const { limits } = this.#options.engine;
    const task = { path, applicationId, format, defaults, limits };
    const surveying = this.#surveys.begin(task, (rows) => onRows?.(rows));
    // The survey outlives many pieces, and a race with it would keep each of them.
    const waiting: { end: () => void } = { end() {} };
    const over = () => waiting.end();
    surveying.survey.then(over, over);
    const pieces = source[Symbol.asyncIterator]();
    const since = performance.now();
    try {
      for (let total = 0; ; ) {
        const next = await new Promise<IteratorResult<Uint8Array> | null>((resolve, reject) => {
          waiting.end = () => resolve(null);
          if (surveying.hasEnded) resolve(null);
          else pieces.next().then(resolve, reject);
        });
        if (next === null) break;
        if (next.done) {
          surveying.complete();
          break;
        }
        total += next.value.length;
        onBytes?.(total);
        hold(next.value.length);
        await file.appendFile(next.value);
        surveying.grow(total);
        const early = since + total / MOST_BYTES_A_MS - performance.now();
        if (early > 0) await setTimeout(early);
      }
    } catch (error) {
      surveying.stop(error);
    }
    const survey = await surveying.survey;
    requireForm(survey);
    await file.datasync();
    return survey;
  }

  /**
   * @param unsure - kept in memory only: after a restart, it could answer a question about other
   * rows
   */
  #run(job: Job, engine = this.#options.engine, unsure?: DropTask["unsure"]): void {
    const stop = new AbortController();
    const before = this.#ends.get(job.applicationId) ?? Promise.resolve();
    const end = before
      .then(() =>
        this.#mint(job, engine, AbortSignal.any([this.#closing.signal, stop.signal]), unsure),
      )
      .catch((error: unknown) => this.#options.onError(error))
      .finally(() => {
        // A drop that was stopped in the queue may have been queued again.
        if (this.#runs.get(job.dropId)?.stop === stop) this.#runs.delete(job.dropId);
      });
    this.#runs.set(job.dropId, { stop, end });
    this.#ends.set(job.applicationId, end);
  }

  async #mint(
    job: Job,
    engine: DropEngine,
    signal: AbortSignal,
    unsure: DropTask["unsure"],
  ): Promise<void> {
    if (signal.aborted) return;
    const { applicationId, keyId, scopes, id, format, defaults } = job;
    const principal = { applicationId, keyId, scopes };
    const place = this.#place(job);
    this.#change(job, { status: "running" });
    try {
      await runDrop({
        ...{ id, format, defaults, unsure, signal },
        source: piecesOf(join(place, ROWS)),
        minting: engineMinting(engine, this.#pace, principal, job.dryRun, signal),
        turn: () => this.#pace(principal, 0, signal),
        result: join(place, RESULT),
        progress: join(place, PROGRESS),
        onProgress: ({ minted, mintable, refused, unknown, bytes }) =>
          this.#change(job, { minted, mintable, refused, unknown, bytes }),
      });
      await this.#finish(job, "done", null);
    } catch (error) {
      // The engine has ended. The next start resumes the drop.
      if (this.#closing.signal.aborted || hasEnded(error)) return;
      if (signal.aborted) await this.#finish(job, "stopped", null);
      else await this.#finish(job, "failed", this.#failureOf(error));
    }
  }

  #failureOf(error: unknown): { code: string; detail: string } {
    if (error instanceof RequestRefused) return { code: error.code, detail: error.message };
    if (error instanceof UnsureOutcome)
      return { code: "drop_unsure", detail: `${error.message} ${ASK_UNSURE}` };
    this.#options.onError(error);
    return { code: "internal", detail: "The server failed. Upload the same rows again to go on." };
  }

  #change(job: Job, change: Partial<Job>): void {
    this.#jobs.set(job.dropId, { ...(this.#jobs.get(job.dropId) ?? job), ...change });
  }

  async #finish(job: Job, status: Job["status"], failure: Job["failure"]): Promise<void> {
    const place = this.#place(job);
    const ended = { status, failure, finishedAt: Date.now() };
    await writeJob(place, { ...(this.#jobs.get(job.dropId) ?? job), ...ended });
    await rm(join(place, ROWS), { force: true });
    this.#change(job, ended);
  }

  async #forget(applicationId: string): Promise<void> {
    const over = this.#of(applicationId).filter((job) => !isUnfinished(job));
    for (const job of over.slice(MAX_KEPT)) {
      this.#jobs.delete(job.dropId);
      this.#ids.get(applicationId)?.delete(job.dropId);
      await rm(this.#place(job), { recursive: true, force: true });
    }
  }
}

const ASK_UNSURE = "Then upload the same rows again with ?unsure=minted or ?unsure=lost.";

function isUnfinished({ status }: DropJob): boolean {
  return status === "queued" || status === "running";
}

/** The suffix of an incomplete upload. */
const DRAFT = ".upload";
const ROWS = "rows";
const JOB = "drop.json";
const RESULT = "result.ndjson";
const PROGRESS = "progress.ndjson";

/** Opens the file when it is read: an error of a stream that nobody reads would end the process. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path);
}

/** Atomic. */
async function writeJob(place: string, job: Job): Promise<void> {
  const draft = join(place, `${JOB}.new`);
  await using file = await open(draft, "w");
  await file.writeFile(JSON.stringify(job));
  await file.datasync();
  await rename(draft, join(place, JOB));
}

function requireForm({ errors, moreErrors }: Survey): void {
  if (errors.length === 0) return;
  const issues = errors.map(({ row, field, ...error }) => ({
    pointer: row === 0 ? "" : `/rows/${row}${field === "" ? "" : `/${field}`}`,
    code: "validation_failed" as const,
    detail: sentenceOf({ field, ...error }),
  }));
  const [first] = errors;
  const ofRow = first === undefined || first.row === 0 ? "" : `Row ${first.row}: `;
  const detail = first && `${ofRow}${sentenceOf(first)}`;
  throw new MintmarkError("drop_invalid", detail, { issues, moreIssues: moreErrors });
}
