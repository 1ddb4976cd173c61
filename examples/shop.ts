/**
 * The other examples begin with this: an engine over a new store, an application, and tokens that
 * it may mint. `embed.ts` shows the steps in one piece. No chain runs: a server commits the
 * batches, docs/operating.md.
 */
import { type NewAsset, openEngine, type ReceiptSigner, type Uuid } from "mintmark";

/** The engine binds its store to this chain and contract. */
export const SETTLEMENT = {
  chainId: 31337n,
  contract: "0x8464135c8f25da09e49bc8782676a84730c318bc",
  engineVersion: 5,
} as const;

/**
 * Opens an engine with one application. With a `receiptSigner` the engine signs a receipt for each
 * mint.
 */
export async function openShop(
  store: string,
  options: { readonly receiptSigner?: ReceiptSigner } = {},
) {
  const engine = await openEngine({
    store,
    createIfMissing: true,
    environment: "sandbox",
    settlement: SETTLEMENT,
    ...options,
  });
  const { applicationId } = await engine.applications.create({ name: "Shop" });
  const { secret } = await engine.keys.issue(applicationId);
  const principal = await engine.keys.authenticate(secret);

  /** Makes a token of this application known and mintable, and resolves with its asset id. */
  async function addToken(token: Omit<NewAsset, "applicationId">): Promise<Uuid> {
    const { assetId } = await engine.assets.add({ ...token, applicationId });
    await engine.operator.recordRegistered(assetId); // a server learns this from L1
    return assetId;
  }

  return { engine, applicationId, principal, addToken };
}
