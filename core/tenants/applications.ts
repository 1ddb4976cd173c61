import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { argumentError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import { type List, listOf, type OrderedPage, tablePage } from "../ledger/list.ts";
import type { Application, Mode, Uuid } from "../model.ts";
import type { ApplicationRecord } from "../store/records.ts";
import { requireModeOrNull, requireText, requireUuid } from "../validate.ts";

function applicationView(record: ApplicationRecord): Application {
  const { applicationId, name, suspended, dataAvailabilityMode, createdAt } = record;
  return { applicationId, name, suspended, dataAvailabilityMode, createdAt };
}

export async function createApplication(
  context: EngineContext,
  application: NewApplication,
  wait?: WaitOptions,
) {
  const name = requireText("name", application.name, 200);
  const dataAvailabilityMode = requireModeOrNull(application.dataAvailabilityMode ?? null);
  const applicationId =
    application.applicationId === undefined
      ? uuidv7()
      : requireUuid("applicationId", application.applicationId);
  return context.change((ledger, group) => {
    const known = ledger.tenants.applications.named(applicationId, group);
    if (known?.name === name) return applicationView(known);
    if (known !== undefined)
      throw argumentError("applicationId", `is that of the application "${known.name}"`);
    const applicationIndex = ledger.tenants.applications.view(group).size;
    const created = { applicationIndex, applicationId, name, dataAvailabilityMode };
    const { time } = ledger.journal.record(group, { kind: "applicationCreated", ...created });
    const record: ApplicationRecord = {
      ...created,
      suspended: false,
      createdAt: time,
      nextSequence: 0,
      eventCount: 0,
    };
    ledger.tenants.applications.set(group, record);
    return applicationView(record);
  }, wait);
}

type ChangedFields =
  | Pick<ApplicationRecord, "suspended">
  | Pick<ApplicationRecord, "dataAvailabilityMode">;

export function applicationsOf(context: EngineContext): Applications {
  const change = (applicationId: Uuid, fields: ChangedFields, wait?: WaitOptions) =>
    context.change((ledger, group) => {
      const application = ledger.tenants.application(applicationId, group);
      const changed = { ...application, ...fields };
      const { applicationIndex, suspended, dataAvailabilityMode } = changed;
      if (application.dataAvailabilityMode !== dataAvailabilityMode)
        ledger.journal.record(group, {
          kind: "applicationChanged",
          applicationIndex,
          dataAvailabilityMode,
        });
      else if (application.suspended !== suspended)
        ledger.journal.record(group, { kind: "applicationSuspended", applicationIndex, suspended });
      else return applicationView(application);
      ledger.tenants.applications.set(group, changed);
      if (application.suspended !== suspended) {
        const { applicationId } = application;
        group.onDurable(() => ledger.services.emit("access", { applicationId }));
      }
      return applicationView(changed);
    }, wait);
  return {
    create: async (application, wait) => createApplication(context, application, wait),
    get: async (applicationId) =>
      applicationView(context.ledger.tenants.application(applicationId, null)),
    list: (page = {}) =>
      listOf(context, "applications", "", page, (start, ledger) =>
        tablePage(ledger.tenants.applications.durable, start, applicationView, page.order),
      ),
    change: async (applicationId, { dataAvailabilityMode }, wait) =>
      change(
        applicationId,
        { dataAvailabilityMode: requireModeOrNull(dataAvailabilityMode) },
        wait,
      ),
    suspend: (applicationId, wait) => change(applicationId, { suspended: true }, wait),
    resume: (applicationId, wait) => change(applicationId, { suspended: false }, wait),
  };
}

/**
 * The tenants of an engine.
 *
 * @example
 * const { applicationId } = await engine.applications.create({ name: "My game" });
 */
export interface Applications {
  /**
   * Creates a tenant. Idempotent for the same id and name. Rejects with `validation_failed`, also
   * for an id of another name.
   */
  create(application: NewApplication, wait?: WaitOptions): Promise<Application>;
  /** Rejects with `application_not_found`. */
  get(applicationId: Uuid): Promise<Application>;
  /** Oldest first. */
  list(page?: OrderedPage): List<Application>;
  /** Sets the mode of mints that name none; null: mints must name one. */
  change(
    applicationId: Uuid,
    changes: { readonly dataAvailabilityMode: Mode | null },
    wait?: WaitOptions,
  ): Promise<Application>;
  /** Refuses the application's keys until {@link Applications.resume}. */
  suspend(applicationId: Uuid, wait?: WaitOptions): Promise<Application>;
  /** Accepts a suspended application's keys again. */
  resume(applicationId: Uuid, wait?: WaitOptions): Promise<Application>;
}

/** Input of {@link Applications.create}. */
export interface NewApplication {
  readonly applicationId?: Uuid | undefined;
  readonly name: string;
  /** The mode of mints that name none; null, the default: they must name one. */
  readonly dataAvailabilityMode?: Mode | null | undefined;
}
