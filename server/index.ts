/** The HTTP service as a library: build it on an engine, listen, shut it down. */
export { buildServer } from "./app.ts";
export { HeldBytes } from "./http/access/rate-account.ts";
export { type ShutdownOptions, shutDown } from "./process/shutdown.ts";
export type { ServerOptions } from "./service.ts";
