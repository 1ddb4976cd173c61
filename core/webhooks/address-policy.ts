import type { LookupAddress, LookupOptions } from "node:dns";
import { Resolver } from "node:dns/promises";
import { BlockList, isIP } from "node:net";

/** Allowed addresses of webhooks: public ones, and in a sandbox also this machine. */
export type WebhookReach = "public" | "public-and-loopback";

/**
 * Addresses that are not public: the special-purpose addresses of IANA's registries (RFC 6890 and
 * its successors), multicast, and IPv6 addresses that contain an IPv4 one (mapped, translated,
 * NAT64, 6to4, Teredo).
 */
const NOT_PUBLIC = {
  ipv4: blockList(
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24",
    "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4",
  ),
  // A list of its own, because a list with the mapped addresses would contain every IPv4 address.
  ipv6: blockList(
    "::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32",
    "2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8",
  ),
} as const;
const LOOPBACK = blockList("127.0.0.0/8 ::1/128");

function blockList(...subnets: string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets.join(" ").split(" ")) {
    const [address = "", bits] = subnet.split("/");
    list.addSubnet(address, Number(bits), family(address));
  }
  return list;
}

function family(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}

export class ForbiddenAddress extends Error {
  override readonly name = "ForbiddenAddress";
}

export function mayReach(reach: WebhookReach, address: string): boolean {
  const kind = family(address);
  if (reach === "public-and-loopback" && LOOPBACK.check(address, kind)) return true;
  return !NOT_PUBLIC[kind].check(address, kind);
}

/**
 * Throws {@link ForbiddenAddress} for a host that is a forbidden IP address. Names are checked when
 * resolved.
 */
export function requireReachable(reach: WebhookReach, { hostname }: URL): void {
  const address = hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(address) !== 0 && !mayReach(reach, address)) throw forbidden(address);
}

/**
 * Resolves names for the connections themselves, so the checked address is the one that is used.
 * Refuses a name with any forbidden address.
 */
export function guardedLookup(reach: WebhookReach, resolve: typeof addressesOf = addressesOf) {
  return (
    hostname: string,
    options: LookupOptions,
    callback: (error: Error | null, address?: string | LookupAddress[], family?: number) => void,
  ): void => {
    resolve(hostname).then(
      (addresses) => {
        const [first] = addresses;
        const bad = addresses.some(({ address }) => !mayReach(reach, address));
        if (bad || first === undefined) callback(forbidden(hostname));
        else if (options.all) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error),
    );
  };
}

const LOCALHOST: LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];
/** Two tries of two seconds. */
const resolver = new Resolver({ timeout: 2_000, tries: 2 });

/**
 * The addresses of a name, by DNS alone. Node runs only two lookups of the system's resolver at a
 * time, so a few names without answer would delay all others.
 */
async function addressesOf(hostname: string): Promise<LookupAddress[]> {
  if (/^(?:.+\.)?localhost\.?$/i.test(hostname)) return LOCALHOST;
  const [v4, v6] = await Promise.allSettled([
    resolver.resolve4(hostname),
    resolver.resolve6(hostname),
  ]);
  const found = [
    ...(v4.status === "fulfilled" ? v4.value.map((address) => ({ address, family: 4 })) : []),
    ...(v6.status === "fulfilled" ? v6.value.map((address) => ({ address, family: 6 })) : []),
  ];
  if (found.length === 0 && v4.status === "rejected") throw v4.reason;
  return found;
}

function forbidden(host: string): ForbiddenAddress {
  return new ForbiddenAddress(`${host} is not a public address.`);
}
