import { isIP, SocketAddress } from "node:net";

/** Stands for callers whose address nobody knows: they share one bucket. */
const UNKNOWN = "unknown";

/**
 * The canonical form of an address as sockets and proxies write it: without port, brackets, quotes
 * and zone, and IPv4 also where IPv6 maps it. null for other text.
 */
function plainAddress(text: string): string | null {
  const bare = text.trim().replace(/^"(.*)"$/, "$1");
  const host =
    /^\[([^\]]*)\](?::\d{1,5})?$/.exec(bare)?.[1] ?? bare.replace(/^([\d.]+):\d{1,5}$/, "$1");
  const [address = ""] = host.split("%", 1);
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : null;
  const canonical = new SocketAddress({ address, family: "ipv6" }).address;
  return /^::ffff:([\d.]+)$/.exec(canonical)?.[1] ?? canonical;
}

/**
 * The name of an address for limits. IPv6 by its /64, which usually belongs to one customer, or
 * another prefix.
 */
export function addressGroup(text: string | undefined, prefix = 64): string {
  const address = plainAddress(text ?? "");
  if (address === null) return UNKNOWN;
  if (!address.includes(":")) return address;
  const [head = "", tail = ""] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const last = tail === "" ? [] : tail.split(":");
  while (groups.length + last.length < 8) groups.push("0");
  return [...groups, ...last].slice(0, prefix / 16).join(":");
}

/**
 * The addresses of an X-Forwarded-For that can be believed, in canonical form. Proxies append to
 * it, so what stands before an entry that is no address comes from whoever wrote that entry.
 */
export function forwardedAddresses(field: string): string {
  const entries = field.split(",").map(plainAddress);
  return entries.slice(entries.lastIndexOf(null) + 1).join(", ");
}
