import type { Reporter, TestModule, Vitest } from "vitest/node";
import { leftOut } from "./split.ts";

/**
 * Vitest reporter: says what a whole run left out, and ends with `N passed, N failed` alone on a
 * line.
 */
export default class ClosingLine implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) count[test.result().state] += 1;
      // A file that failed before it could declare its tests counts as a failure, never as nothing.
      if (module.state() === "failed" && module.errors().length > 0) count.failed += 1;
    }
    const skipped = count.skipped + count.pending;
    const ended = `${count.passed} passed, ${count.failed} failed${skipped ? `, ${skipped} skipped` : ""}`;
    // Vitest does not declare the names of files that a command line gives.
    const { projects = [], filenamePattern } = (this.#vitest ?? {}) as Partial<
      Vitest & { filenamePattern: string[] }
    >;
    const names = projects.map(({ name }) => name);
    process.stdout.write(`\n${filenamePattern === undefined ? leftOut(names) : ""}${ended}\n`);
  }
}
