import type { MemberClient } from "../../core/committee/member-service.ts";
import type { Engine } from "../../core/index.ts";
import type { AttesterClient } from "../../core/mirror/history.ts";

/** A committee of which some do not answer for a while, or answer wrongly. */
export class SickCommittee {
  readonly #sick = new Set<number>();
  #lying = false;

  sicken(lying: boolean, random: (below: number) => number): void {
    this.#lying = lying;
    for (let index = 0; index <= random(4); index++) this.#sick.add(random(5));
  }

  heal(): void {
    this.#sick.clear();
  }

  readonly member = (it: MemberClient, index: number): MemberClient => ({
    address: it.address,
    sign: async (batch, terms, signal) => {
      if (!this.#sick.has(index)) return it.sign(batch, terms, signal);
      if (!this.#lying) throw new Error("connection refused");
      return it
        .sign({ ...batch, batchRoot: batch.dataHash, dataHash: batch.batchRoot }, terms, signal)
        .catch(() => "0x");
    },
    ...(it.nextBatch && { nextBatch: it.nextBatch.bind(it) }),
  });

  readonly attester = (it: AttesterClient, index: number): AttesterClient => ({
    address: it.address,
    attest: async (mirror, counts, epoch, signal) => {
      if (!this.#sick.has(index)) return it.attest(mirror, counts, epoch, signal);
      if (!this.#lying) throw new Error("connection refused");
      return it.attest(mirror, counts, epoch + 1n, signal);
    },
  });
}

/** xorshift32, whose state is never 0; resolves each call to an integer below its argument. */
export function numbers(seed: number): (below: number) => number {
  let state = (seed << 1) | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** The engine of a process that dies at its n-th change of a kind: from then on nothing answers. */
export function dying(engine: Engine, atChange: number, change = /^record|^seal$/): Engine {
  let left = atChange;
  const mortal = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value === "object" && value !== null) return mortal(value);
        if (typeof value !== "function") return value;
        return (...args: readonly unknown[]) => {
          if (change.test(String(name))) left--;
          if (left <= 0) throw new Error("killed");
          return value.apply(target, args);
        };
      },
    });
  return mortal(engine);
}
