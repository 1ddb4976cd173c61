import { isIP } from "node:net";
import { ServerError } from "../http/errors.ts";

/**
 * The names that requests may call this server by. A page of another site can lead its own name to this address (DNS rebinding), and a
 * browser then lets it read the answers. Addresses, `localhost` and names without a dot are safe: no other site can own one.
 */
export class HostNames {
  readonly #names: ReadonlySet<string>;

  /** `*` among the names takes every name. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
  }

  /** Throws `host_unknown`. HTTP/1.0 has no Host, and no browser speaks it. */
  require(host: string | undefined): void {
    if (host === undefined || this.#names.has("*")) return;
    const name = host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    const isAddress = isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
    if (isAddress || !name.includes(".") || name.endsWith(".localhost") || this.#names.has(name)) return;
    throw new ServerError("host_unknown");
  }
}
