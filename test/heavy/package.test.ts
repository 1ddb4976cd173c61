import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { installNode, installPackage, PackageLife } from "../package-life.ts";

test.each([22, 26])(
  "on Node %i the package deploys, serves, mints, rebuilds, and leaves",
  async (version) => {
    const project = mkdtempSync(join(tmpdir(), "mintmark-life-"));
    try {
      installPackage(project);
      await using life = new PackageLife(project, installNode(project, version));
      await life.run();
    } finally {
      rmSync(project, { recursive: true, force: true });
    }
  },
);
