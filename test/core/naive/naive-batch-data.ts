import type { VaultEntry } from "../../../core/protocol/batch-data.ts";

/**
 * Batch data by the grammar of docs/protocol.md 4, on hex text; shares nothing with the core's
 * codec.
 */

/**
 * A run of its own for each slot, the owner inside, the minting blob raw: nothing is clever, so
 * nothing can be wrong.
 */
export function naiveEncode(slots: readonly (VaultEntry | null)[]): string {
  const keyOf = (entry: VaultEntry) => uint(entry.chainId, 8) + entry.assetType.slice(2);
  const assets = [
    ...new Set(slots.flatMap((entry) => (entry === null ? [] : [keyOf(entry)]))),
  ].sort();
  const runs = slots.map((entry) => {
    if (entry === null) return `ffff${uint(1, 3)}`;
    const mintingBlob = entry.mintingBlob.slice(2);
    const mintingBlobForm = mintingBlob === "" ? 0 : 1;
    const form = (8 << 4) | (mintingBlobForm << 2);
    const record =
      entry.owner.slice(2) +
      uint(entry.amount, 8) +
      (mintingBlob === "" ? "" : uint(mintingBlob.length / 2, 1) + mintingBlob);
    return (
      uint(assets.indexOf(keyOf(entry)), 2) +
      uint(form, 1) +
      uint(1, 3) +
      (mintingBlob === "" ? "" : uint(0, 1)) +
      record
    );
  });
  return `0x01${uint(assets.length, 2)}${assets.join("")}${uint(0, 2)}${runs.join("")}`;
}

/** The slots of well-formed batch data; checks nothing. */
export function naiveDecode(data: string): (VaultEntry | null)[] {
  let rest = data.slice(2);
  const take = (bytes: number) => {
    const field = rest.slice(0, bytes * 2);
    rest = rest.slice(bytes * 2);
    return field;
  };
  const number = (bytes: number) => Number.parseInt(take(bytes), 16);
  take(1);
  const assets = Array.from({ length: number(2) }, () => ({
    chainId: BigInt(`0x${take(8)}`),
    assetType: take(32),
  }));
  const owners = Array.from({ length: number(2) }, () => take(20));
  const slots: (VaultEntry | null)[] = [];
  while (rest !== "") {
    const asset = assets[number(2)];
    if (asset === undefined) {
      slots.push(...Array.from({ length: number(3) }, () => null));
      continue;
    }
    const form = number(1);
    const [amountForm, mintingBlobForm, ownerForm] = [form >> 4, (form >> 2) & 3, form & 3];
    const length = number(3);
    const runOwner = ownerForm === 3 ? owners[number(2)] : undefined;
    const mintingBlobLength = mintingBlobForm >= 1 ? number(1) : 0;
    const packed = () => take(Math.ceil(mintingBlobLength / 2)).slice(mintingBlobLength % 2);
    const first = mintingBlobForm === 3 ? packed() : "";
    for (let i = 0; i < length; i++) {
      const owner = runOwner ?? (ownerForm === 0 ? take(20) : owners[number(ownerForm)]);
      const amount = amountForm === 0 ? 1n : BigInt(`0x${take(amountForm)}`);
      const mintingBlob = [
        () => "",
        () => take(mintingBlobLength === 0 ? number(1) : mintingBlobLength),
        () => [...packed()].map((nibble) => `3${nibble}`).join(""),
        () => ascii((BigInt(first) + BigInt(i)).toString()),
      ][mintingBlobForm]?.();
      slots.push({
        chainId: asset.chainId,
        owner: `0x${owner}`,
        assetType: `0x${asset.assetType}`,
        amount,
        mintingBlob: `0x${mintingBlob}`,
      });
    }
  }
  return slots;
}

function uint(value: number | bigint, bytes: number): string {
  return value.toString(16).padStart(bytes * 2, "0");
}

function ascii(text: string): string {
  return [...text].map((character) => uint(character.charCodeAt(0), 1)).join("");
}
