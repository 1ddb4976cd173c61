import { vi } from "vitest";

/**
 * Waits until a check passes. The limit is that of a machine ten times slower: a test that fails by
 * time tells nothing.
 */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 200_000, interval: 20 });
}
