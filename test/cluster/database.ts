import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PostgresServer } from "../../scripts/cluster/postgres.ts";

/** A primary with one synchronous standby. */
export interface TestDatabase extends AsyncDisposable {
  readonly folder: string;
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
}

export async function testDatabase(): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-cluster-"));
  // PostgreSQL runs as another user when the tests run as root.
  await chmod(folder, 0o755);
  const primary = await PostgresServer.primary(join(folder, "primary"));
  const standby = await primary.standby(join(folder, "standby"), "one");
  return {
    folder,
    primary,
    standby,
    async [Symbol.asyncDispose]() {
      await Promise.all([standby.kill(), primary.kill()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
