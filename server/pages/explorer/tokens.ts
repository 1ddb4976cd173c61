import { decimalAmount, type VaultContent } from "../../../core/protocol/verifier.ts";
import { readMetadata } from "./api.ts";
import { button, type Child, code, el } from "./dom.ts";
import type { Column } from "./vaults.ts";

// Names and images of tokens by their issuers, which no proof covers. A `data:` image is part of this server's answer.
// The host of any other image would learn who looks at which token, so the page fetches those only on request.

/** An image, or a button that fetches it from its host; its address when browsers cannot fetch it. */
export function showImage(source: string, name: string): HTMLElement {
  if (!/^(?:https|data):/.test(source)) return code(source);
  const place = el("span", {});
  const show = () => place.replaceChildren(picture(source, name, "320"));
  place.append(button("Show the image", show));
  return place;
}

function picture(source: string, name: string, width: string): HTMLElement {
  return el("img", { src: source, alt: name, width, referrerpolicy: "no-referrer" });
}

/** An amount of an ERC-20 as its owner's wallet shows it; nothing for other tokens. */
function wholeTokens(amount: bigint, { symbol, decimals, quantum }: Readonly<Record<string, unknown>>): Child[] {
  if (typeof decimals !== "number" || typeof quantum !== "string") return [];
  const shown = decimalAmount(amount, { decimals, quantum: BigInt(quantum) });
  return typeof symbol === "string" ? [shown, " ", isolated(symbol)] : [shown];
}

/** Text of an issuer. Its bidirectional characters cannot reorder what stands beside it. */
function isolated(text: string): HTMLElement {
  return el("bdi", {}, text);
}

/** A column with each token's name and small image, and the button that fetches images from their hosts. */
export function tokenColumn(): { readonly column: Column; readonly fetchImages: HTMLElement } {
  const waiting: (() => void)[] = [];
  let isAsked = false;
  const fetchImages = button("Show images from their issuers' hosts", () => {
    isAsked = true;
    for (const show of waiting.splice(0)) show();
    fetchImages.hidden = true;
  });
  fetchImages.hidden = true;
  async function describe({ vaultId, amount }: VaultContent, place: HTMLElement): Promise<void> {
    const metadata = (await readMetadata(vaultId)) ?? {};
    const { name, image } = metadata;
    const amountOf = wholeTokens(amount, metadata);
    const named = typeof name === "string" ? [isolated(name), ...(amountOf.length > 0 ? [": "] : [])] : [];
    place.append(el("span", {}, ...named, ...amountOf));
    if (typeof image !== "string" || !/^(?:https|data):/.test(image)) return;
    const show = () => place.prepend(picture(image, "", "40"));
    if (isAsked || image.startsWith("data:")) return show();
    waiting.push(show);
    fetchImages.hidden = false;
  }
  const cell: Column["cell"] = (vault) => {
    const place = el("span", { class: "named" });
    // The vault is listed without it too.
    void describe(vault, place).catch(() => {});
    return place;
  };
  return { column: { name: "Name", cell }, fetchImages };
}
