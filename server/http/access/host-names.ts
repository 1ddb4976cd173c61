import { isIP } from "node:net";
import { ServerError } from "../errors.ts";

/**
 * Host names for requests to this server. Another site can point its name to this address (DNS rebinding), and a
 * browser would let it read responses. No other site can own addresses, `localhost` or names without a dot.
 */
export class HostNames {
  readonly #names: ReadonlySet<string>;
  /** The last accepted name: nearly all requests have the same. */
  #taken: string | undefined;

  /** `*` among the names accepts every name. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
  }

  /** Whether a Host header names this server. HTTP/1.0 has none, and no browser uses it. */
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
