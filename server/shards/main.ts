import { z } from "zod";
import { stopSignal } from "../stop-signal.ts";
import { buildRouter } from "./router.ts";
import { findShards } from "./shard.ts";

// The router as a process: `npm run router`. It holds nothing, so it may be stopped at any time.

const settings = z.object({
  MINTMARK_SHARDS: z
    .string("Give the addresses of the shards' servers with commas between.")
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(z.url({ protocol: /^https?$/, error: "Give http or https addresses with commas between." })).min(1)),
  MINTMARK_HOST: z.string().min(1).default("127.0.0.1"),
  MINTMARK_PORT: z.coerce.number("Give a port.").int().min(0).max(65_535).default(3000),
});

const HELP = `Usage: npm run router

The router before several servers, each with a store of its own, until SIGINT or SIGTERM. By the environment:

  MINTMARK_SHARDS  the servers' addresses with commas between
  MINTMARK_HOST    address to listen on, 127.0.0.1
  MINTMARK_PORT    port to listen on, 3000
`;

try {
  if (process.argv.includes("--help")) {
    process.stdout.write(HELP);
    process.exit(0);
  }
  const read = settings.safeParse(process.env);
  if (!read.success) {
    throw new Error(read.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("\n"));
  }
  const { MINTMARK_SHARDS: urls, MINTMARK_HOST: host, MINTMARK_PORT: port } = read.data;
  const router = await buildRouter({ shards: await findShards(urls), log: { level: "info" } });
  await router.listen({ host, port });
  await stopSignal();
  await router.close();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
