import type { Chain, Request } from "./fixture.ts";

/**
 * What can go wrong between a process and its node. A chain that restarts is `down` and then there
 * again with the state that it had: the local node itself cannot be restarted, since it keeps its
 * state in memory.
 */
export type NodeFault = "refused" | "lostAnswer" | "sentTwice" | "dropped" | "down";

type Call = Parameters<Request>[0];

/** Stands between the operator and the chain, and breaks what it is told to break. */
export class FaultyChain {
  readonly #chain: Pick<Chain, "request">;
  #plan: { readonly fault: NodeFault; readonly every: number } | null = null;
  #calls = 0;
  #struck = 0;

  constructor(chain: Pick<Chain, "request">) {
    this.#chain = chain;
  }

  /** How many requests have met a fault. */
  get struck(): number {
    return this.#struck;
  }

  /** From now on every n-th request that the fault applies to meets it. */
  plan(fault: NodeFault, every: number): void {
    this.#plan = { fault, every };
    this.#calls = 0;
  }

  heal(): void {
    this.#plan = null;
  }

  readonly request: Request = (async (call: Call) => {
    const plan = this.#plan;
    if (plan === null || !this.#strikes(plan.fault, plan.every, call.method))
      return this.#pass(call);
    this.#struck++;
    switch (plan.fault) {
      case "lostAnswer":
        await this.#pass(call).catch(() => {});
        throw busy();
      case "sentTwice":
        await this.#pass(call);
        return this.#pass(call);
      case "dropped":
        // The node said yes and forgot: the hash is all that the sender looks at, and it has
        // computed it.
        return `0x${"00".repeat(32)}`;
      default:
        throw busy();
    }
  }) as Request;

  #strikes(fault: NodeFault, every: number, method: string): boolean {
    if (fault === "down") return true;
    if ((fault === "sentTwice" || fault === "dropped") && method !== "eth_sendRawTransaction")
      return false;
    return ++this.#calls % every === 0;
  }

  #pass(call: Call): Promise<unknown> {
    return this.#chain.request(call as never);
  }
}

function busy(): Error {
  return Object.assign(new Error("rate limited"), { code: -32005 });
}
