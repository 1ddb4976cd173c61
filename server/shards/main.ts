import type { z } from "zod";
import type { routerSettings } from "../process-settings.ts";
import { stopSignal } from "../stop-signal.ts";
import { buildRouter } from "./router.ts";
import { findShards } from "./shard.ts";

/** The router as a process, until SIGINT or SIGTERM. It holds nothing, so it may be stopped at any time. */
export async function serveRouter(settings: z.output<typeof routerSettings>): Promise<void> {
  const { MINTMARK_SHARDS: urls, MINTMARK_HOST: host, MINTMARK_PORT: port } = settings;
  const router = await buildRouter({ shards: await findShards(urls), log: { level: "info" } });
  await router.listen({ host, port });
  await stopSignal();
  await router.close();
}
