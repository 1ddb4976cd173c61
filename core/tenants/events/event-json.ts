import type { ApplicationEvent, EventData, EventType } from "../../model.ts";

type Json<T> = { readonly [K in keyof T]: T[K] extends bigint | null ? Exclude<T[K], bigint> | string : T[K] };

/** An event as streams, pages and webhooks write it: whole numbers in decimal digits, its time in RFC 3339. */
export type EventJson = {
  readonly [T in EventType]: {
    readonly sequence: number;
    readonly type: T;
    readonly createdAt: string;
    readonly data: Json<EventData[T]>;
  };
}[EventType];

/** An event as JSON. */
export function eventJson({ sequence, type, createdAt, data }: ApplicationEvent): EventJson {
  const fields = Object.entries(data).map(([name, value]) => [name, typeof value === "bigint" ? `${value}` : value]);
  return {
    sequence,
    type,
    createdAt: new Date(createdAt).toISOString(),
    data: Object.fromEntries(fields),
  } as EventJson;
}
