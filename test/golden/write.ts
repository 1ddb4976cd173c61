/**
 * `npm run golden`: writes test/golden/1.0 anew, by the product itself: a store with every kind of entry, its backup,
 * what readers see of it, exit kits of all kinds, a receipt, the OpenAPI document and the names of all exports. Until
 * 1.0.0 is released, whoever changes a format runs it. Then the folder stays, and the next version gets its own.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportExitKit } from "../../core/guards/exit/index.ts";
import { LevelJournal } from "../../core/index.ts";
import { readL1 } from "../../core/l1/index.ts";
import { answerHelp } from "../../scripts/command.ts";
import { until } from "../../scripts/demo/until.ts";
import { exitKitText } from "../../scripts/exit/kit-file.ts";
import { OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { type Sandbox, startSandbox } from "../../scripts/sandbox/sandbox.ts";
import { createClient, transfer } from "../../server/client/index.ts";
import { CHANGES, changeable } from "../core/engine/every-change.ts";
import { seen } from "../core/engine/seen.ts";
import { exportedNames, GOLDEN, httpDocument, textOf } from "./golden.ts";

answerHelp("Usage: npm run golden\n\nWrites test/golden/1.0 anew. Only for a version that is not released yet.\n");
const [alice, bob] = USERS;
const scratch = await mkdtemp(join(tmpdir(), "mintmark-golden-"));
const file = (name: string, text: string) => writeFile(join(GOLDEN, name), text);

/** A store that has seen every change, and the copy of its journal. */
async function writeStore(): Promise<void> {
  await using journal = await LevelJournal.open(join(GOLDEN, "backup"));
  const made = await changeable({ store: join(GOLDEN, "store"), journal });
  for (const change of Object.values(CHANGES)) await change(made);
  const { applicationId } = made.tenant;
  await file("seen.json", textOf({ applicationId, seen: await seen(made.engine, applicationId) }));
  await made.engine.close();
}

/** The kits of final vaults, by name. */
async function writeKits({ engine, description }: Sandbox, vaults: Readonly<Record<string, bigint>>): Promise<void> {
  const { rpcUrl: rpc, contract, applicationId } = description;
  const l1 = await readL1({ rpc, contract });
  for (const [name, vaultId] of Object.entries(vaults)) {
    const status = async () => (await engine.vaults.get(applicationId, vaultId)).status;
    await until(`vault ${vaultId} is final`, status, (found) => found === "finalized");
    await file(`kits/${name}.json`, exitKitText(await exportExitKit(await engine.proofs.vault(vaultId), l1)));
  }
}

async function start(rollupData: "blobs" | "calldata"): Promise<Sandbox> {
  return startSandbox({ folder: join(scratch, rollupData), port: 0, chainPort: 0, rollupData });
}

async function mintIn({ engine, description }: Sandbox, mode: "validium" | "zk-rollup", ...tokenIds: number[]) {
  const { assetId } = description.assets.find(({ standard }) => standard === "erc721") ?? { assetId: "" };
  const mints = tokenIds.map((id) => ({ assetId, tokenId: `${id}`, amount: 1, dataAvailabilityMode: mode }));
  const principal = await engine.keys.authenticate(description.apiKey);
  return engine.mint(principal, { users: [{ userId: alice.userId, mints }] });
}

async function writeFromSandboxes(): Promise<void> {
  const blobs = await start("blobs");
  const minted = await mintIn(blobs, "zk-rollup", 1, 2);
  const [kept = 0n, given = 0n] = minted.vaults.map(({ vaultId }) => vaultId);
  const [held] = (await mintIn(blobs, "validium", 3)).vaults;
  const { api: baseUrl, apiKey, contract } = blobs.description;
  const settlement = { chainId: 31_337n, contract, engineVersion: 5 };
  const signed = { settlement, signer: OPERATOR.address, vaults: minted.vaults, receipt: await minted.receipt() };
  await file("receipt.json", textOf(signed));
  const gift = { vaultId: `${given}`, to: bob.owner.address };
  const client = createClient({ baseUrl, apiKey });
  const { transfers } = await transfer(client, { transfers: [gift], signer: alice.owner, wait: true });
  const transferred = BigInt(transfers[0]?.newVaultId ?? 0);
  await writeKits(blobs, { blobs: kept, validium: held?.vaultId ?? 0n, transferred });
  await blobs.stop();

  const calldata = await start("calldata");
  const [one] = (await mintIn(calldata, "zk-rollup", 4)).vaults;
  await writeKits(calldata, { calldata: one?.vaultId ?? 0n });
  await calldata.stop();
}

await rm(GOLDEN, { recursive: true, force: true });
await mkdir(join(GOLDEN, "kits"), { recursive: true });
try {
  await writeStore();
  await writeFromSandboxes();
  await file("openapi.json", `${JSON.stringify(httpDocument())}\n`);
  await file("exports.json", textOf(await exportedNames()));
} finally {
  await rm(scratch, { recursive: true, force: true });
}
