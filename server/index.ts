/** The HTTP service as a library: build it on an engine, listen, shut it down. */
export { buildServer, type ServerOptions } from "./app.ts";
export { type ShutdownOptions, shutDown } from "./process/shutdown.ts";
export { buildRouter, type RouterOptions } from "./shards/router.ts";
export { findShards, type Shard, type Shards } from "./shards/shard.ts";
