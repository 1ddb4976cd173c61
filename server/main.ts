import { openEngine } from "../core/index.ts";
import { buildServer } from "./app.ts";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { shutDown } from "./shutdown.ts";
import { stopSignal } from "./stop-signal.ts";

// The process: settings from the environment, one engine, one server, and an orderly end on SIGINT or SIGTERM.

async function serve(config: Config): Promise<void> {
  await using engine = await openEngine({
    store: config.MINTMARK_STORE,
    environment: config.MINTMARK_ENVIRONMENT,
    settlement: {
      chainId: config.MINTMARK_CHAIN_ID,
      contract: config.MINTMARK_CONTRACT,
      engineVersion: config.MINTMARK_ENGINE_VERSION,
    },
  });
  const app = await buildServer({
    engine,
    log: { level: config.MINTMARK_LOG_LEVEL },
    rateLimits: {
      key: { units: config.MINTMARK_RATE_UNITS, windowSeconds: config.MINTMARK_RATE_WINDOW_SECONDS },
    },
    requestTimeoutSeconds: config.MINTMARK_REQUEST_TIMEOUT_SECONDS,
    trustedProxies: config.MINTMARK_TRUSTED_PROXIES,
    ...(config.MINTMARK_TOKEN_SECRET && { tokenSecret: config.MINTMARK_TOKEN_SECRET }),
  });
  await app.listen({ host: config.MINTMARK_HOST, port: config.MINTMARK_PORT });
  const signal = await stopSignal();
  app.log.info({ signal }, "shutting down");
  await shutDown(app, {
    drainMs: config.MINTMARK_DRAIN_SECONDS * 1000,
    deadlineMs: config.MINTMARK_SHUTDOWN_SECONDS * 1000,
  });
}

try {
  await serve(readConfig(process.env));
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error);
  process.exitCode = 1;
}
