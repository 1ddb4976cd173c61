import { useState } from "preact/hooks";
import { decimalAmount } from "../../../core/protocol/verifier.ts";
import type { Asset, Vault } from "../../client/index.ts";
import { grouped } from "../shared/format.ts";
import { metadataAt, Picture, textIn } from "../shared/tokens.tsx";
import { call, type Listed } from "./api.ts";
import { Select, useLoad } from "./parts.tsx";

export type Units = Pick<Vault, "assetId" | "tokenId" | "amount" | "quantum" | "decimals">;

/** Each asset is asked for once, however many rows name it. */
const assets = new Map<string, Promise<Asset>>();

export function readAsset(assetId: string): Promise<Asset> {
  const read = assets.get(assetId) ?? call<Asset>("GET", `/api/v1/assets/${assetId}`);
  assets.set(assetId, read);
  read.catch(() => assets.delete(assetId));
  return read;
}

/** Forgets the assets of another application. */
export function forgetAssets(): void {
  assets.clear();
}

export function useAsset(assetId: string): Asset | undefined {
  return useLoad(() => readAsset(assetId), assetId).value;
}

/** An amount in whole tokens, grouped: `12,500.5`. */
export function wholeTokens({
  amount,
  quantum,
  decimals,
}: Pick<Units, "amount" | "quantum" | "decimals">): string {
  return grouped(decimalAmount(BigInt(amount), { quantum: BigInt(quantum), decimals }));
}

/** A token with its amount: `12.5 PTS`, `Swords #17`, `2,500 × Potions #7`. */
function amountText(units: Units, asset: Asset | undefined): string {
  const { tokenId, assetId } = units;
  const whole = wholeTokens(units);
  if (tokenId === null) return `${whole} ${asset?.symbol ?? assetId}`;
  const token = `${asset?.name ?? assetId} #${tokenId}`;
  return asset?.standard === "erc721" ? token : `${whole} × ${token}`;
}

/** Links an amount to the page of its token. */
export function Worth({ of, isRest = false }: { of: Units; isRest?: boolean }) {
  const asset = useAsset(of.assetId);
  const path = of.tokenId === null ? of.assetId : `${of.assetId}/${of.tokenId}`;
  const text =
    isRest && asset?.standard !== "erc721" ? `all that is left of ${asset?.name ?? "it"}` : null;
  return (
    <a href={`#/assets/${path}`}>
      <bdi>{text ?? amountText(of, asset)}</bdi>
    </a>
  );
}

export function Named({ of: { assetId, tokenId } }: { of: Units }) {
  const path = `/public/v1/metadata/${assetId}/${tokenId}`;
  const said = useLoad(() => metadataAt(path), path).value ?? {};
  const name = textIn(said, "name") ?? `Token ${tokenId}`;
  return (
    <span class="named">
      <Picture source={textIn(said, "image")} name={name} asked />
      <bdi>{name}</bdi>
    </span>
  );
}

export function useEnabledAssets() {
  return useLoad(
    () => call<Listed<Asset>>("GET", "/api/v1/assets?enabled=true&limit=100"),
    "assets",
  );
}

export function AssetChoice(props: {
  assets: readonly Asset[];
  onChoose?: (assetId: string) => void;
}) {
  return (
    <Select
      label="Asset"
      name="assetId"
      options={Object.fromEntries(
        props.assets.map((each) => [each.assetId, `${each.name} (${each.standard})`]),
      )}
      onChange={(event) => props.onChoose?.(event.currentTarget.value)}
    />
  );
}

const MODES = {
  validium:
    "The committee keeps the data. This is the cheapest. An exit without the operator needs one honest member.",
  "zk-rollup":
    "L1 carries the data. Everybody can exit from L1 alone, and each mint costs more gas.",
} as const;

export function ModeChoice() {
  const [mode, setMode] = useState<keyof typeof MODES>("validium");
  return (
    <>
      <Select
        label="Data"
        name="dataAvailabilityMode"
        aria-describedby="mode"
        options={{ validium: "validium", "zk-rollup": "rollup" }}
        onChange={(event) => setMode(event.currentTarget.value as keyof typeof MODES)}
      />
      <p class="quiet wide" id="mode">
        {MODES[mode]}
      </p>
    </>
  );
}
