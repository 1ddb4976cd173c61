import type { Mode, Standard } from "../../core/index.ts";
import type { Vault } from "../../server/client/index.ts";
import { USERS } from "../sandbox/accounts.ts";
import type { SandboxDescription } from "../sandbox/sandbox.ts";

/** The first vault of a mint by standard, user and mode, with what its owner's work needs. */
export function choose(
  { users, assets }: SandboxDescription,
  vaults: readonly Vault[],
  standard: Standard,
  index: number,
  mode: Mode,
) {
  const asset = assets.find((known) => known.standard === standard);
  const user = users[index];
  const vault = vaults.find(
    (found) =>
      found.assetId === asset?.assetId &&
      found.userId === user?.userId &&
      found.dataAvailabilityMode === mode,
  );
  const owner = USERS[index]?.owner;
  if (!asset || !user || !vault || !owner)
    throw new Error(`the mint reply holds no ${standard} vault of ${mode}`);
  const gain = BigInt(vault.amount) * BigInt(vault.quantum);
  return { standard, asset, user, vault, owner, gain };
}

export type Choice = ReturnType<typeof choose>;
