/**
 * The issuer of tokens. It consents to each batch with its tokens, from the application's record of
 * mints or by a policy.
 */
export type { AssetIssuer, IssuerReader } from "../ports.ts";
export { Issuer, type IssuerConsent, type IssuerOptions } from "./issuer.ts";
export { LocalMintRecord, type RecordedMint } from "./local-record.ts";
export {
  type ConsentRequest,
  consentRequestTypedData,
  type IssuerClient,
  RemoteIssuer,
} from "./remote-issuer.ts";
export { type AssetPolicy, type IssuedVault, MintPolicy, type MintRecord } from "./usage-book.ts";
