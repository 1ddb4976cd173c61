import { isIP } from "node:net";
import { ServerError } from "../http/errors.ts";

/**
 * The names that requests may call this server by. A page of another site can lead its own name to this address (DNS
 * rebinding), and a browser then lets it read the answers. Addresses, `localhost` and names without a dot are safe: no
 * other site can own one.
 */
export class HostNames {
  readonly #names: ReadonlySet<string>;
  /** The last one that was taken: nearly all requests have the same. */
  #taken: string | undefined;

  /** `*` among the names takes every name. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
  }

  /** Whether a Host header names this server. HTTP/1.0 has none, and no browser speaks it. */
  has(host: string | undefined): boolean {
    if (host === undefined || host === this.#taken || this.#names.has("*")) return true;
    const name = host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    const isAddress = isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
    const known = isAddress || !name.includes(".") || name.endsWith(".localhost") || this.#names.has(name);
    if (known) this.#taken = host;
    return known;
  }

  /** Throws `host_unknown` for another name. */
  require(host: string | undefined): void {
    if (!this.has(host)) throw new ServerError("host_unknown");
  }
}
