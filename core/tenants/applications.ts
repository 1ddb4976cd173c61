import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions, tablePage } from "../ledger/list.ts";
import type { Application, Uuid } from "../model.ts";
import type { ApplicationRecord } from "../store/records.ts";
import { requireText, requireUuid } from "../validate.ts";

export function applicationView({ applicationId, name, suspended, createdAt }: ApplicationRecord): Application {
  return { applicationId, name, suspended, createdAt };
}

/** Takes in a tenant. Throws `validation_failed`, also for an id that is taken. */
export async function createApplication(
  ledger: Ledger,
  application: { readonly applicationId?: Uuid; readonly name: string },
  signal?: AbortSignal,
): Promise<Application> {
  const name = requireText("name", application.name, 200);
  const applicationId =
    application.applicationId === undefined ? uuidv7() : requireUuid("applicationId", application.applicationId);
  return ledger.writer.alone(async (group) => {
    if (ledger.applicationIndices.has(applicationId)) {
      throw new MintmarkError("validation_failed", "applicationId is taken");
    }
    const applicationIndex = ledger.applications.latestCount;
    const { time } = ledger.record(group, { kind: "applicationCreated", applicationIndex, applicationId, name });
    const fresh = { suspended: false, createdAt: time, nextSequence: 0, eventCount: 0 };
    const record: ApplicationRecord = { applicationIndex, applicationId, name, ...fresh };
    ledger.putApplication(group, record);
    return applicationView(record);
  }, signal);
}

export function applicationsOf(context: EngineContext): Applications {
  const setSuspended = (suspended: boolean) => async (applicationId: Uuid, wait?: WaitOptions) => {
    const { ledger } = context;
    return ledger.writer.alone(async (group) => {
      const application = ledger.latestApplication(applicationId);
      if (application.suspended !== suspended) {
        const { applicationIndex } = application;
        ledger.record(group, { kind: "applicationSuspended", applicationIndex, suspended });
        ledger.putApplication(group, { ...application, suspended });
        group.onDurable(() => ledger.emit("access", { applicationId: application.applicationId }));
      }
      return applicationView({ ...application, suspended });
    }, wait?.signal);
  };
  return {
    create: async (application, wait) => createApplication(context.ledger, application, wait?.signal),
    get: async (applicationId) => applicationView(context.ledger.application(applicationId)),
    list: (page = {}) =>
      listOf(context, "applications", "", page, (start) =>
        tablePage(context.ledger.applications, start, applicationView),
      ),
    suspend: setSuspended(true),
    resume: setSuspended(false),
  };
}

/**
 * The tenants of an engine.
 *
 * @example
 * const { applicationId } = await engine.applications.create({ name: "My game" });
 */
export interface Applications {
  /** Takes in a tenant. Rejects with `validation_failed`, also for an id that is taken. */
  create(
    application: { readonly applicationId?: Uuid; readonly name: string },
    wait?: WaitOptions,
  ): Promise<Application>;
  /** Rejects with `application_not_found`. */
  get(applicationId: Uuid): Promise<Application>;
  /** Oldest first. */
  list(page?: PageOptions): List<Application>;
  /** Refuses the application's keys until {@link Applications.resume} lets it in again. */
  suspend(applicationId: Uuid, wait?: WaitOptions): Promise<Application>;
  /** Lets a suspended application's keys in again. */
  resume(applicationId: Uuid, wait?: WaitOptions): Promise<Application>;
}
