import { type Engine, type Mode, openEngine } from "../core/index.ts";

export const REQUEST = 1_000;
export const USERS_PER_REQUEST = 10;
const USERS = 1_000;
/** Concurrent callers, with requests of 1,000 mints and of one. */
export const CALLERS = 64;
export const SINGLE_CALLERS = 256;

const contract = "0x00000000000000000000000000000000000000aa";
export const SETTLEMENT = { chainId: 31_337n, contract, engineVersion: 5 } as const;

export type World = Awaited<ReturnType<typeof settle>>;

export function open(path: string): Promise<Engine> {
  return openEngine({
    store: path,
    settlement: SETTLEMENT,
    environment: "sandbox",
    createIfMissing: true,
  });
}

/**
 * An application whose users mint a collection of random ids, one of consecutive ids, a game's
 * items, a currency.
 */
export async function settle(engine: Engine) {
  const { applicationId } = await engine.applications.create({ name: "bench" });
  const add = async (number: number, standard: "erc20" | "erc721" | "erc1155") => {
    const contractAddress = `0x${number.toString(16).padStart(40, "0")}` as const;
    const { assetId } = await engine.assets.add({
      standard,
      contractAddress,
      name: standard,
      symbol: standard,
    });
    await engine.assets.whitelist(assetId);
    await engine.operator.recordRegistered(assetId);
    await engine.assets.enable(applicationId, assetId);
    return assetId;
  };
  const random = await add(0x1001, "erc721");
  const counted = await add(0x1002, "erc721");
  const items = await add(0x1003, "erc1155");
  const currency = await add(0x1004, "erc20");
  const { secret: apiKey } = await engine.keys.issue(applicationId);
  const principal = await engine.keys.authenticate(apiKey);
  const owners = Array.from(
    { length: USERS },
    (_, i) => `0x${(i + 1).toString(16).padStart(40, "0")}` as const,
  );
  const users = await Promise.all(
    owners.map((ownerAddress) => engine.users.create(applicationId, { ownerAddress })),
  );
  const assets = { random, counted, items, currency };
  return { principal, apiKey, users: users.map(({ userId }) => userId), assets };
}

const MIXED = Array.from({ length: 10 }, (_, i): Mode => (i === 9 ? "zk-rollup" : "validium"));

/** Makes requests that never repeat an ERC-721 id, equal in every run. */
export class Workload {
  readonly #world: World;
  #seed = 0x2545f491;
  #nextRandom = 0;
  #nextCounted = 1_000_000;
  #nextRequest = 0;

  readonly #modes: readonly Mode[];

  /**
   * @param fresh - starts after this number of tokens, which another workload may have minted
   * @param modes - the modes of requests of 1,000, in turn; default a tenth for the rollup
   */
  constructor(world: World, fresh = 0, modes: readonly Mode[] = MIXED) {
    this.#world = world;
    this.#modes = modes;
    this.#nextRandom = fresh;
    this.#nextCounted += fresh;
  }

  /**
   * A request of 1,000: 50 % random ERC-721 ids, 25 % consecutive, 15 % ERC-1155, 10 % ERC-20;
   * modes in turn.
   */
  bulk() {
    const mode = this.#modes[this.#nextRequest++ % this.#modes.length] ?? "validium";
    const perUser = REQUEST / USERS_PER_REQUEST;
    const users = Array.from({ length: USERS_PER_REQUEST }, (_, i) => ({
      userId: this.#world.users[(this.#nextRequest * USERS_PER_REQUEST + i) % USERS],
      mints: Array.from({ length: perUser }, (_, j) => this.#mint(j % 20, mode)),
    }));
    return asFromWire({ users });
  }

  single() {
    const userId = this.#world.users[this.#nextRequest++ % USERS];
    return asFromWire({ users: [{ userId, mints: [this.#mint(0, "validium")] }] });
  }

  #mint(kind: number, dataAvailabilityMode: Mode) {
    const { random, counted, items, currency } = this.#world.assets;
    if (kind < 10)
      return {
        assetId: random,
        mintingBlob: hex(this.#uniqueId()),
        amount: 1,
        dataAvailabilityMode,
      };
    if (kind < 15)
      return {
        assetId: counted,
        mintingBlob: hex(this.#nextCounted++),
        amount: 1,
        dataAvailabilityMode,
      };
    if (kind < 18)
      return {
        assetId: items,
        mintingBlob: hex(this.#number(1_000)),
        amount: 3,
        dataAvailabilityMode,
      };
    return {
      assetId: currency,
      mintingBlob: "",
      amount: 1 + this.#number(1_000_000),
      dataAvailabilityMode,
    };
  }

  /** A bijection of 48 bits scatters a counter: random without repetition. */
  #uniqueId(): number {
    const mask = (1n << 48n) - 1n;
    let value = BigInt(this.#nextRandom++);
    for (const factor of [0x9e3779b97f4bn, 0xc2b2ae3d27d5n]) {
      value = (value * factor) & mask;
      value ^= value >> 24n;
    }
    return Number(value);
  }

  #number(below: number): number {
    this.#seed ^= this.#seed << 13;
    this.#seed ^= this.#seed >>> 17;
    this.#seed ^= this.#seed << 5;
    return (this.#seed >>> 0) % below;
  }
}

/** Like a parser's output: entries share no strings. */
function asFromWire(request: object): unknown {
  return JSON.parse(JSON.stringify(request));
}

function hex(id: number): string {
  return `0x${Buffer.from(String(id)).toString("hex")}`;
}
