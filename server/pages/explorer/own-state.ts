import type { Market, MarketAsset, OwnersOrder, OwnVault, SignedIn } from "./api.ts";
import type { Holding, ShownStanding } from "./own-vaults.tsx";
import type { Act } from "./owner-acts.tsx";

/** An application in which the owner can trade, with its tokens. */
export interface OwnMarket extends Market {
  readonly assets: readonly MarketAsset[];
}

/** The pages of a signed-in owner share its tokens and orders, and the act under way. */
export interface Own {
  readonly signedIn: SignedIn;
  readonly holdings: readonly Holding[];
  /** Whether these are all tokens of the owner. */
  readonly isWhole: boolean;
  /** The newest first. */
  readonly orders: readonly OwnersOrder[];
  readonly markets: readonly OwnMarket[];
  /** Whether the owner wants images of other hosts. */
  readonly asked: boolean;
  /** Whether the owner's wallet is asked now. */
  readonly busy: boolean;
  /** The act before could not do these. */
  readonly notices: readonly string[];
  standingOf(vault: OwnVault): ShownStanding;
  /** Acts, and shows what was refused. Resolves with whether nothing was. */
  run(work: (act: Act) => Promise<readonly string[]>): Promise<boolean>;
  /** Reads the orders again. */
  refresh(): void;
  say(notices: readonly string[]): void;
  onAsked(): void;
}
