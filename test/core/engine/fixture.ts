import { MemoryLevel } from "memory-level";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import * as core from "../../../core/index.ts";

export const SETTLEMENT = {
  chainId: 31_337n,
  contract: "0x00000000000000000000000000000000000000aa",
  engineVersion: 5,
} as const;

/** 2030-01-01. */
export const START = 1_893_456_000_000;

/** A clock that moves only when told to. */
export class TestClock {
  now = START;
  readonly read = (): number => this.now;
}

export function memory(): core.Database {
  return new MemoryLevel<Buffer, Buffer>({ storeEncoding: "buffer" });
}

export function openTest(
  store: core.EngineOptions["store"],
  options: Partial<core.EngineOptions> = {},
): Promise<core.Engine> {
  return core.openEngine({
    store,
    settlement: SETTLEMENT,
    environment: "sandbox",
    createIfMissing: true,
    divergenceMs: 0,
    ...options,
  });
}

export interface TestTenant {
  readonly applicationId: core.Uuid;
  readonly principal: core.Principal;
  readonly token: string;
  readonly users: readonly core.User[];
}

export interface Fixture {
  readonly engine: core.Engine;
  readonly database: core.Database;
  readonly clock: TestClock;
  readonly tenant: TestTenant;
  readonly assets: Readonly<Record<core.Standard, core.Uuid>>;
}

/** Owners of users, in order; their keys are known, so that they can sign. */
export const OWNERS = [ownerOf(1), ownerOf(2), ownerOf(3), ownerOf(4)] as const;

function ownerOf(index: number): PrivateKeyAccount {
  return privateKeyToAccount(`0x${index.toString(16).padStart(64, "0")}`);
}

/**
 * An engine over memory with one application of four users and one enabled asset of each standard.
 */
export async function fixture(options: Partial<core.EngineOptions> = {}): Promise<Fixture> {
  const database = memory();
  const clock = new TestClock();
  const engine = await openTest(database, { clock: clock.read, ...options });
  const assets = {
    erc20: await knownAsset(engine, "erc20"),
    erc721: await knownAsset(engine, "erc721"),
    erc1155: await knownAsset(engine, "erc1155"),
  };
  const tenant = await newTenant(engine, Object.values(assets));
  return { engine, database, clock, tenant, assets };
}

let contracts = 0x1000;

/** An asset that is whitelisted and registered. */
export async function knownAsset(
  engine: core.Engine,
  standard: core.Standard,
  options: {
    readonly supplyCap?: bigint;
    readonly chainId?: bigint;
    readonly mintingBlobScheme?: core.MintingBlobScheme;
    readonly rawMintingBlobs?: boolean;
    readonly decimals?: number;
    readonly quantum?: bigint;
    readonly applicationId?: core.Uuid;
    readonly ready?: boolean;
  } = {},
): Promise<core.Uuid> {
  const { ready = true, ...rest } = options;
  const contractAddress: core.Hex = `0x${(contracts++).toString(16).padStart(40, "0")}`;
  const { assetId } = await engine.assets.add({
    standard,
    contractAddress,
    name: standard,
    symbol: standard,
    ...rest,
  });
  if (ready) {
    await engine.assets.whitelist(assetId);
    await engine.operator.recordRegistered(assetId, { minterLocked: true });
  }
  return assetId;
}

/** An application with a key and one user for each of {@link OWNERS}. */
export async function newTenant(
  engine: core.Engine,
  enabled: readonly core.Uuid[],
  key: Parameters<core.Engine["keys"]["issue"]>[1] = {},
): Promise<TestTenant> {
  const { applicationId } = await engine.applications.create({ name: "tenant" });
  const { secret: token } = await engine.keys.issue(applicationId, key);
  const principal = await engine.keys.authenticate(token);
  const users: core.User[] = [];
  for (const { address } of OWNERS)
    users.push(await engine.users.create(applicationId, { ownerAddress: address }));
  for (const assetId of enabled) await engine.assets.enable(applicationId, assetId);
  return { applicationId, principal, token, users };
}

/** An entry of a mint, by a text. */
export interface MintBody extends core.MintEntry {
  readonly mintingBlob: string;
  readonly amount: number | string;
  readonly dataAvailabilityMode: core.Mode;
}

/** The identifier text as the API wants it. */
export function mintingBlobOf(text: string | number | bigint): core.Hex {
  return `0x${Buffer.from(String(text)).toString("hex")}`;
}

export function mintOf(
  assetId: core.Uuid,
  text: string | number,
  amount: number | string = 1,
  mode: core.Mode = "validium",
): MintBody {
  return {
    assetId,
    mintingBlob: text === "" ? "" : mintingBlobOf(text),
    amount,
    dataAvailabilityMode: mode,
  };
}

/** A request of one user. */
export function requestOf(user: core.User | undefined, ...mints: MintBody[]) {
  return { users: [{ userId: user?.userId ?? "", mints }] };
}

/** A transaction hash that is told by a number. */
export function hashOf(value: number): core.Hash {
  return `0x${value.toString(16).padStart(64, "0")}`;
}

/** A rejection in short: its code and the codes at its pointers. */
export async function refusal(
  promise: Promise<unknown>,
): Promise<{ code: string; issues: Record<string, string> }> {
  try {
    await promise;
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || !("issues" in error)) throw error;
    const issues = error.issues as readonly { pointer: string; code: string }[];
    return {
      code: String(error.code),
      issues: Object.fromEntries(issues.map(({ pointer, code }) => [pointer, code])),
    };
  }
  throw new Error("it was not refused");
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
