import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { decimalAmount, type Hex, type VaultContent } from "../../../core/protocol/verifier.ts";
import { counted, grouped } from "./format.ts";
import { useLoad } from "./parts.tsx";
import { orNull, request } from "./request.ts";

// Names and images of tokens by their metadata, which no proof covers. A `data:` image is part of
// this server's answer. The host of any other image would learn who looks at which token, so the
// page fetches those only on request.

export type Metadata = Readonly<Record<string, unknown>>;
type Vault = Pick<VaultContent, "vaultId" | "chainId" | "assetType" | "mintingBlob"> & {
  /** The asset of a vault that is not public yet: only its contract's metadata can be asked for. */
  readonly unsealedAsset?: string | null;
};

const known = new Map<string, Promise<Metadata | null>>();

/** The name and look of the token in a vault; null when it has no metadata. */
export function readMetadata({
  vaultId,
  chainId,
  assetType,
  mintingBlob,
  unsealedAsset,
}: Vault): Promise<Metadata | null> {
  // All vaults of an ERC-20 have one answer.
  const key = unsealedAsset ?? (mintingBlob === "0x" ? `${chainId} ${assetType}` : `${vaultId}`);
  const path = unsealedAsset
    ? `/public/v1/metadata/${unsealedAsset}`
    : `/public/v1/vaults/${vaultId}/metadata`;
  const read = known.get(key) ?? metadataAt(path);
  known.set(key, read);
  read.catch(() => known.delete(key));
  return read;
}

/** The answer of a public address for metadata; null for none. */
export async function metadataAt(path: string): Promise<Metadata | null> {
  return orNull(request(path).then((answer) => answer.json()));
}

/** Reads a vault's metadata for a component. The vault is shown without it too. */
export function useMetadata(vault: Vault): Metadata {
  return useLoad(() => readMetadata(vault), vault.unsealedAsset ?? vault.vaultId).value ?? {};
}

export function textIn(metadata: Metadata, name: string): string | null {
  const value = metadata[name];
  return typeof value === "string" && value !== "" ? value : null;
}

/**
 * Whole tokens with their symbol, as a wallet shows them; units of a token whose decimals nobody
 * has told.
 */
export function amountText(amount: bigint, mintingBlob: Hex, metadata: Metadata): string {
  const { decimals, quantum, symbol } = metadata;
  if (mintingBlob !== "0x") return amount.toLocaleString("en");
  if (typeof decimals !== "number" || typeof quantum !== "string") return counted(amount, "unit");
  const whole = grouped(decimalAmount(amount, { decimals, quantum: BigInt(quantum) }));
  return typeof symbol === "string" ? `${whole} ${symbol}` : whole;
}

/** An amount of a vault's token. Its characters cannot reorder what stands beside it. */
export function Amount({ of, amount = of.amount }: { of: VaultContent; amount?: bigint }) {
  return <bdi>{amountText(amount, of.mintingBlob, useMetadata(of))}</bdi>;
}

interface PictureProps {
  source: string | null;
  name: string;
  asked: boolean;
  /** A text that the picture is drawn from, where there is none. */
  seed?: string;
}

/**
 * An image of a token; in its place a drawing or a box with the name, while it is not asked for or
 * there is none.
 */
export function Picture({ source, name, asked, seed }: PictureProps) {
  const [failed, setFailed] = useState(false);
  const isShown =
    source !== null && isImage(source) && (asked || source.startsWith("data:")) && !failed;
  if (!isShown && seed !== undefined) return <Drawn seed={seed} />;
  if (!isShown) {
    return (
      <span class="picture none" aria-hidden="true">
        <bdi>{name}</bdi>
      </span>
    );
  }
  return (
    <img
      class="picture"
      src={source}
      alt={name}
      referrerpolicy="no-referrer"
      onError={() => setFailed(true)}
    />
  );
}

/** A pattern of tiles, left and right alike, that one text always gives. */
function Drawn({ seed }: { seed: string }) {
  let hash = 0x811c9dc5;
  for (const sign of seed) hash = Math.imul(hash ^ (sign.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
  const tiles: ComponentChildren[] = [];
  for (let place = 0; place < 15; place++) {
    if (((mixed >>> place) & 1) === 0) continue;
    const [x, y] = [place % 3, Math.floor(place / 3)];
    for (const at of new Set([x, 4 - x]))
      tiles.push(<rect key={`${at} ${y}`} x={at + 1} y={y + 1} width="1.02" height="1.02" />);
  }
  const hue = (mixed >>> 8) % 360;
  return (
    <svg class="picture" viewBox="0 0 7 7" aria-hidden="true" fill={`hsl(${hue} 45% 52%)`}>
      <rect width="7" height="7" fill={`hsl(${hue} 45% 52% / 0.16)`} />
      {tiles}
    </svg>
  );
}

export function isImage(source: string): boolean {
  return /^(?:https|data):/.test(source);
}
