import { readFileSync } from "node:fs";

/** A committed vector file, parsed. Its shape is the caller's word: the generator, which the test holds equal, has the same. */
export function readVectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), "utf8")) as T;
}

/** The vectors' JSON form of a value: integers as decimal strings. */
export type AsJson<T> = T extends bigint | number
  ? string
  : T extends string | boolean | null | undefined
    ? T
    : T extends Uint8Array
      ? never
      : { readonly [K in keyof T]: AsJson<T[K]> };
