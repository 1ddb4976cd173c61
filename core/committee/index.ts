/** The data availability committee: a member, and what gathers its signatures. */
export { type CollectorOptions, collectAttestations, type MemberClient } from "./collector.ts";
export { CommitteeMember, type MemberOptions } from "./member.ts";
export { CommitteeRefusal, type RefusalReason } from "./refusal.ts";
