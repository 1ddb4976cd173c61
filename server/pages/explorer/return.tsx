import { useState } from "preact/hooks";
import { quantizedAmount } from "../../../core/protocol/verifier.ts";
import { sentenceOf } from "../shared/format.ts";
import { Button, Notice, onSent } from "../shared/parts.tsx";
import type { MarketAsset } from "./api.ts";
import type { Own } from "./own-state.ts";
import { Notices } from "./own-tokens.tsx";
import { bringBack } from "./owner-acts.tsx";

// Tokens on L1 come back: the owner burns them there, and L1 makes a vault.

/** A token that may come back. */
type Returnable = Pick<
  MarketAsset,
  "assetId" | "standard" | "contractAddress" | "quantum" | "decimals" | "name" | "symbol"
>;

export function BackPage({ own }: { own: Own }) {
  const known = new Map<string, Returnable>();
  for (const { newest } of own.holdings) known.set(newest.assetId, newest);
  for (const { assets } of own.markets) for (const asset of assets) known.set(asset.assetId, asset);
  const [chosen, setChosen] = useState<string | null>(null);
  const all = [...known.values()];
  const asset = all.find(({ assetId }) => assetId === chosen) ?? all[0];
  if (asset === undefined)
    return <p class="quiet">No application of yours has a token here that could come back.</p>;
  return (
    <>
      <p class="lead">
        Tokens in your wallet on L1 become tokens here, to give, trade and use without gas.
      </p>
      <section class="sheet" aria-label="Bring tokens back">
        <div class="claim">
          <label>
            Token
            <select onChange={(event) => setChosen(event.currentTarget.value)}>
              {all.map(({ assetId, name, symbol }) => (
                <option key={assetId} value={assetId} selected={assetId === asset.assetId}>
                  {`${name} (${symbol})`}
                </option>
              ))}
            </select>
          </label>
        </div>
        <Back key={asset.assetId} own={own} asset={asset} tokenId={null} />
        <Notices own={own} />
      </section>
    </>
  );
}

interface BackProps {
  own: Own;
  asset: Returnable;
  /** null to ask for it. */
  tokenId: string | null;
  onCancel?: () => void;
}

/** Brings one token back, or units of it. */
export function Back({ own, asset, tokenId, onCancel }: BackProps) {
  const [isSent, setSent] = useState(false);
  const { standard, contractAddress, quantum, decimals, name, symbol } = asset;
  const asksId = tokenId === null && standard !== "erc20";
  const send = onSent(async (fields) => {
    setSent(false);
    try {
      const id = tokenId ?? String(fields.get("id")).trim();
      if (standard !== "erc20" && !/^\d{1,78}$/.test(id))
        throw new Error("Enter the token's id, a whole number.");
      const whole = { decimals, quantum: BigInt(quantum) };
      const text = String(fields.get("amount") ?? "").trim();
      const entry = {
        token: contractAddress as `0x${string}`,
        standard,
        quantum: BigInt(quantum),
        tokenId: standard === "erc20" ? null : BigInt(id),
        units: standard === "erc721" ? 1n : quantizedAmount(text, whole),
      };
      setSent(await own.run((act) => bringBack(act, entry)));
    } catch (error) {
      own.say([sentenceOf(error)]);
    }
  });
  return (
    <form class="claim" autocomplete="off" onSubmit={send}>
      {asksId && (
        <label>
          Id of the token
          <input name="id" inputMode="numeric" placeholder="7" />
        </label>
      )}
      {standard !== "erc721" && (
        <label>
          {`Amount, in ${standard === "erc20" ? symbol : name}`}
          <input name="amount" inputMode="decimal" placeholder="12.5" />
        </label>
      )}
      <p class="quiet">
        Your own transaction burns it on L1, and you pay the gas. L1 makes a vault of it, which
        appears here once its block is final. You can take it to L1 again at any time.
      </p>
      <div class="choices">
        <Button submit main disabled={own.busy} text="Bring back" />
        {onCancel && <Button onClick={onCancel} text="Cancel" />}
      </div>
      {isSent && <Notice>It is burnt on L1, and comes here once its block is final.</Notice>}
    </form>
  );
}
