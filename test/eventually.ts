import { vi } from "vitest";

/** Waits until a check passes: long enough for a busy machine, since a test that fails by time tells nothing. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 20_000, interval: 20 });
}
