import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Address, Uuid } from "../model.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { requireAddress } from "../validate.ts";
import { type Part, readTerms, requireListing } from "./terms.ts";

/** An application whose orders an owner may take, and where it may list its own. */
export interface Market {
  readonly applicationId: Uuid;
  readonly name: string;
  /** A part of the fungible tokens that the signer of an order receives; null for none. */
  readonly fee: Part | null;
}

/** One read looks at no more applications, because each can make anybody its user. */
const MOST_EXAMINED = 500;

export async function ownersMarkets(ledger: Ledger, owner: Address): Promise<Market[]> {
  const prefix = prefixOf.owner(requireAddress("owner", owner));
  const markets: Market[] = [];
  for (let from = 0, examined = 0; examined < MOST_EXAMINED; examined++) {
    const range = { gte: keyOf.owner(owner, from), lt: endOf(prefix), limit: 1 };
    const [found] = await Array.fromAsync(ledger.store.entries(range));
    if (found === undefined) break;
    const applicationIndex = found[0].readUInt32BE(prefix.length);
    from = applicationIndex + 1;
    const application = ledger.tenants.applications.durable.get(applicationIndex);
    const { listing, fee } = await readTerms(ledger, applicationIndex);
    if (application === undefined || listing !== "owners") continue;
    const { applicationId, name } = application;
    markets.push({ applicationId, name, fee });
  }
  return markets;
}

/** Throws `application_not_found` unless the owner is a user, and `order_not_allowed`. */
export async function requireMarket(
  ledger: Ledger,
  owner: Address,
  applicationId: Uuid,
): Promise<void> {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  if (!(await isUser(ledger, owner, applicationIndex)))
    throw new MintmarkError("application_not_found");
  requireListing(await readTerms(ledger, applicationIndex), { owner });
}

export async function isUser(
  ledger: Ledger,
  owner: Address,
  applicationIndex: number,
): Promise<boolean> {
  const key = keyOf.owner(requireAddress("owner", owner), applicationIndex);
  return (await ledger.store.get(key)) !== undefined;
}
