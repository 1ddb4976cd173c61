/** A committee member's service. */
export { buildMemberServer, type MemberServerOptions } from "./app.ts";
