import type { MirrorSetting } from "./settings.ts";

/** The settings that name nodes and other services. */
export interface NodeSettings {
  readonly MINTMARK_RPC_URL?: string | undefined;
  readonly MINTMARK_MIRROR_RPC_URL?: string | undefined;
  readonly MINTMARK_MIRRORS?: readonly Pick<MirrorSetting, "rpcUrl" | "members">[] | undefined;
  readonly MINTMARK_BEACONS?: readonly string[] | undefined;
  readonly MINTMARK_PEERS?: readonly string[] | undefined;
  readonly MINTMARK_MEMBERS?: readonly Service[] | undefined;
  readonly MINTMARK_ISSUERS?: readonly Service[] | undefined;
}

interface Service {
  readonly url: string;
}

/** Shorter parts of an address are words such as `v3`, which a log needs. */
const LEAST_LENGTH = 8;

/** No log may hold these parts of the addresses in these settings: {@link secretParts}. */
export function nodeSecrets({
  MINTMARK_RPC_URL: rpc,
  MINTMARK_MIRROR_RPC_URL: mirrorRpc,
  MINTMARK_MIRRORS: mirrors = [],
  MINTMARK_BEACONS: beacons = [],
  MINTMARK_PEERS: peers = [],
  MINTMARK_MEMBERS: members = [],
  MINTMARK_ISSUERS: issuers = [],
}: NodeSettings): string[] {
  const mirrorRpcs = mirrors.map(({ rpcUrl }) => rpcUrl);
  const attesters = mirrors.flatMap((mirror) => mirror.members ?? []);
  const services = [...members, ...issuers, ...attesters].map(({ url }) => url);
  return [rpc, mirrorRpc, ...mirrorRpcs, ...beacons, ...peers, ...services].flatMap(secretParts);
}

/**
 * An address of a node, a peer or another service often contains a key, so all parts of it but its
 * host are secret.
 */
export function secretParts(url: string | undefined): string[] {
  if (url === undefined) return [];
  const { username, password, pathname, search } = new URL(url);
  const parts = [username, password, ...`${pathname}${search}`.split(/[/?&=]/)];
  return parts.filter(({ length }) => length >= LEAST_LENGTH);
}
