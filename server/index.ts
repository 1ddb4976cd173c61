/** The HTTP service as a library: build it over an engine, listen, shut it down. */
export { buildServer, type ServerOptions } from "./app.ts";
export { type ShutdownOptions, shutDown } from "./shutdown.ts";
