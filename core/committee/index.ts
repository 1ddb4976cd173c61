/**
 * The data availability committee: a member, the client of its service, and the collector of
 * signatures.
 */

export {
  type Collector,
  type CollectorOptions,
  collectAttestations,
  type MemberStanding,
} from "./collector.ts";
export { CommitteeMember, type MemberOptions } from "./member.ts";
export {
  type AttestationRequest,
  type AttestationTerms,
  attestationRequestTypedData,
  type MemberClient,
  RemoteMember,
  type RemoteOptions,
  requestSigner,
} from "./member-service.ts";
export { REFUSAL_REASONS, Refusal, type RefusalReason } from "./proposed.ts";
