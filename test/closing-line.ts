import type { Reporter, TestModule } from "vitest/node";

/** Vitest reporter: ends the run with `N passed, N failed` alone on a line, for whoever reads only that. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) count[test.result().state] += 1;
      // A file that failed before it could declare its tests counts as a failure, never as nothing.
      if (module.state() === "failed" && module.errors().length > 0) count.failed += 1;
    }
    const skipped = count.skipped + count.pending;
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped ? `, ${skipped} skipped` : ""}\n`);
  }
}
