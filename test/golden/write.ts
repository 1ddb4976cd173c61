/**
 * `npm run golden`: writes test/golden/1.0 anew, by the product itself: a store with every kind of
 * entry, its backup, what readers see of it, webhook deliveries, exit kits of all kinds with the
 * contract's storage, a receipt, signed messages, the code of the contracts, the OpenAPI document,
 * the names of all exports, and lists of what else programs rely on. Until 1.0.0 is published,
 * whoever changes a format runs it. Then the folder stays, and the next version gets its own.
 */
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type Hex, hashTypedData, toHex } from "viem";
import { exportExitKit, proveFromL1 } from "../../core/exit/index.ts";
import { type L1Event, LevelJournal } from "../../core/index.ts";
import type { PortalIdentity } from "../../core/ports.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { transfersTypedData } from "../../core/protocol/transfer.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { messageOf, signatureHeaders } from "../../core/webhooks/dispatcher.ts";
import { pinnedCode } from "../../scripts/build/contracts.ts";
import { answerHelp } from "../../scripts/cli/exit.ts";
import { exitKitText } from "../../scripts/commands/exit.ts";
import { lower, send } from "../../scripts/deploy/deployer.ts";
import { OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { CHANGES, type Changeable, changeable } from "../core/engine/every-change.ts";
import { hashOf, mintOf, OWNERS, openTest, refusal, requestOf } from "../core/engine/fixture.ts";
import {
  committed,
  HOME,
  hear,
  imported,
  MIRROR,
  signedList,
  stranger,
} from "../core/engine/l1-fixture.ts";
import { seen } from "../core/engine/seen.ts";
import { commitAll, signedTransfers, transferable } from "../core/engine/transfers-fixture.ts";
import { anvil, at, commitUnseen } from "../settlement/fixture.ts";
import {
  becomeFinal,
  claimed,
  createTransferWorld,
  friendOf,
  give,
  listOf,
  served,
  signTransfers,
  whole,
} from "../settlement/transfers-fixture.ts";
import { exportedNames, GOLDEN, MESSAGES, textOf, WEBHOOK_SECRETS } from "./golden.ts";
import { journalDump } from "./journal.ts";
import { httpDocument } from "./openapi.ts";
import { surface } from "./surface.ts";

answerHelp(
  "Usage: npm run golden [-- surface]\n\nWrites test/golden/1.0 anew, or of it only what programs rely on: the OpenAPI document and the lists. Only for a version that is not published yet.\n",
);
const file = (name: string, text: string) => writeFile(join(GOLDEN, name), text);

/** A store that has seen every change, and the copy of its journal. */
async function writeStore(): Promise<void> {
  await using journal = await LevelJournal.open(join(GOLDEN, "backup"));
  const made = await changeable({ store: join(GOLDEN, "store"), journal });
  for (const change of Object.values(CHANGES)) await change(made);
  await changeMore(made);
  const { applicationId } = made.tenant;
  await file("seen.json", textOf({ applicationId, seen: await seen(made.engine, applicationId) }));
  const deliveries = [];
  for await (const event of made.engine.events.stream(applicationId)) {
    const { id, body } = messageOf({ applicationId }, event, "delivery");
    const headers = signatureHeaders(id, Math.floor(event.createdAt / 1000), body, WEBHOOK_SECRETS);
    deliveries.push({ sequence: event.sequence, headers, body });
  }
  await file("deliveries.json", textOf(deliveries));
  await made.engine.close();
}

/**
 * A store whose operator saw another history on L1 and adopted it, and has an asset that L1 left
 * out of a batch.
 */
async function writeAdopted(): Promise<void> {
  const store = join(GOLDEN, "adopted");
  const { engine, clock, tenant, assets } = await transferable({ store });
  await engine.close();
  const options = { clock: clock.read, createIfMissing: false };
  await cp(store, `${store}-elsewhere`, { recursive: true });
  await using elsewhere = await openTest(`${store}-elsewhere`, options);
  await using adopting = await openTest(store, options);
  for (const [each, tokenId] of [
    [elsewhere, 50],
    [adopting, 51],
  ] as const) {
    await each.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, tokenId)));
    await each.operator.seal("validium");
  }
  const told = hear(adopting, await committed(elsewhere, "validium", 1, 901n));
  if ((await refusal(told)).code !== "history_diverged")
    throw new Error("the histories are the same");
  const batches = [await elsewhere.batches.getSealed("validium", 1)];
  await adopting.operator.adopt([
    { mode: "zk-rollup", first: 0, batches: [] },
    { mode: "validium", first: 1, batches },
  ]);
  await hear(adopting, await committed(elsewhere, "validium", 1, 901n));
  const mints = [mintOf(assets.erc721, 52), mintOf(assets.erc20, "", 5)];
  await adopting.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
  await adopting.operator.seal("validium");
  const { chainId, assetType } = await adopting.assets.get(tenant.applicationId, assets.erc721);
  await adopting.operator.leaveOut("validium", 2, [{ chainId, assetType, failure: "no consent" }]);
  const { assets: named, rootOnL1: batchRoot } = await adopting.batches.getSealed("validium", 2);
  const leftOut = [named.findIndex((asset) => asset.assetType === assetType)];
  await hear(adopting, { ...(await committed(adopting, "validium", 2, 902n)), batchRoot, leftOut });
  await adopting.operator.recordFinalized(HOME, 902n);
  const { applicationId } = tenant;
  await file("adopted.json", textOf({ applicationId, seen: await seen(adopting, applicationId) }));
}

/** Makes the changes that those of one engine leave out, or remove again. */
async function changeMore(made: Changeable): Promise<void> {
  const { engine, tenant, assets } = made;
  const { principal, applicationId } = tenant;
  const owner = lower(at(OWNERS, 0).address);
  let block = 200;
  const tell = (event: object, chainId: bigint = HOME) => {
    const place = { txHash: hashOf(++block), blockNumber: BigInt(block), logIndex: 0 };
    return engine.operator.recordEvents(
      chainId,
      [{ ...place, ...event } as L1Event],
      BigInt(block),
    );
  };
  const mints = [
    mintOf(assets.erc1155, 20, 3),
    mintOf(assets.erc1155, 21, 4),
    mintOf(assets.erc1155, 22, 5),
  ];
  const request = requestOf(
    tenant.users[0],
    ...mints.map((mint) => ({ ...mint, reference: "order" })),
  );
  const { vaults } = await engine.mint(principal, request, { idempotencyKey: "kept" });
  await engine.operator.seal("validium");
  await commitAll(engine, "validium", 1);
  const give = async (i: number) => {
    const transfers = [
      { vaultId: at(vaults, i).vaultId, amount: 0n, to: lower(at(OWNERS, 1).address) },
    ];
    const signed = await signedTransfers(made, transfers);
    await engine.transfers.request(principal, signed);
    return hashTypedData(transfersTypedData(engine.settlement, signed));
  };
  // The first of them fails, and the other one waits.
  await tell({ type: "transfersCancelled", owner, digest: await give(0), cancelledAt: 1n });
  await engine.operator.sealTransfers();
  await give(1);
  await tell({ type: "transfersApproved", owner, digest: hashOf(3), approvedAt: 1n });
  await tell({ type: "sessionRevoked", owner, key: stranger, revokedAt: 2n });
  const { signature, ...list } = await signedList(made, [at(vaults, 2).vaultId]);
  await engine.withdrawals.request(principal, { signature, ...list });
  const digest = hashTypedData(
    withdrawalListTypedData(engine.settlement, { ...list, recipient: owner }),
  );
  await tell({ type: "authorizationCancelled", id: digest, signer: owner });
  await tell(await imported(engine, "validium", 0, BigInt(block + 1)), MIRROR.chainId);
  const { webhook } = await engine.webhooks.create(applicationId, {
    url: "https://example.com/last",
  });
  await engine.webhooks.rotateSecret(applicationId, webhook.webhookId, {
    rotationId: applicationId,
  });
  await engine.webhooks.change(applicationId, webhook.webhookId, { types: ["asset.enabled"] });
  await engine.operator.webhooks.recordDisabled(webhook.webhookId, "500");
}

/**
 * Kits of all kinds, the settlement contract's storage that they are proven against, a receipt and
 * signed messages.
 */
async function writeFromChain(): Promise<void> {
  const kzg = new KzgThread();
  let signed: object = {};
  let minted: readonly bigint[] = [];
  const world = await createTransferWorld(
    { node: anvil, fees: { kzg }, receiptSigner: OPERATOR },
    async ({ engine, settler, principal, users, assets }) => {
      await settler.chooseRollupData();
      const mints = ["2", "3", "4"].map((text) => ({
        ...{
          assetId: assets.get("erc721"),
          mintingBlob: toHex(text),
          amount: 1,
          dataAvailabilityMode: "zk-rollup",
        },
      }));
      const answer = await engine.mint(principal, {
        users: [{ userId: users[0]?.userId, mints }],
      } as unknown);
      const { vaults } = answer;
      minted = vaults.map(({ vaultId }) => vaultId);
      const { settlement } = engine;
      signed = {
        settlement,
        signer: OPERATOR.address.toLowerCase(),
        vaults,
        receipt: await answer.receipt(),
      };
    },
  );
  const { chain, l1, engine, vaults } = world;
  await file("receipt.json", textOf(signed));
  const [kept = 0n, given = 0n, taken = 0n] = minted;
  const part = { vaultId: vaults.units, amount: 30n, to: friendOf(world) };
  const list = await give(world, [part, whole(world, given)]);
  await world.settler.round();
  await becomeFinal(world);
  const [transferred, rest, blobTransferred] = (await listOf(world, list)).transfers.map(
    ({ newVaultId }) => newVaultId,
  );
  const kits = {
    validium: vaults.items,
    calldata: vaults.token,
    blobs: kept,
    transferred,
    rest,
    blobTransferred,
  };
  for (const [name, vaultId] of Object.entries(kits))
    await file(
      `kits/${name}.json`,
      exitKitText(await exportExitKit(await engine.proofs.exit(vaultId ?? 0n), l1)),
    );

  // An operator with enough members commits a transfer that the owner has not signed, and then
  // these members are replaced.
  const { countRollup } = engine.batches.state();
  const unsigned = await signTransfers(world, [whole(world, taken)], at(world.users, 1).owner);
  await commitUnseen(l1, claimed([unsigned], countRollup));
  const fromBlock = chain.settlement.deployedAtBlock;
  const proof = await proveFromL1(taken, { l1, fromBlock, sources: [served(world)], kzg });
  await file("kits/refuted.json", exitKitText(await exportExitKit(proof, l1, { fromBlock })));
  const { by, settlement } = chain;
  const committee = [[OPERATOR.address], 1] as const;
  await send(by, "StateCommitment", settlement.address, "scheduleCommittee", committee);
  await chain.passSeconds(60n);
  await send(by, "StateCommitment", settlement.address, "activateCommittee", committee);
  const dump = gunzipSync(
    Buffer.from(String(await chain.rpc("anvil_dumpState")).slice(2), "hex"),
  ).toString();
  const all = Object.entries<{ code: Hex; storage: object }>(JSON.parse(dump).accounts);
  const own = all.filter(([address, { code }]) => code !== "0x" && !SYSTEM.test(address));
  const accounts = Object.fromEntries(
    own.map(([address, { code, storage }]) => [address, { code, storage }]),
  );
  await file("chain.json", `${JSON.stringify({ contract: l1.settlement.contract, accounts })}\n`);
  await file("messages.json", textOf(await signedMessages(l1.settlement)));
  await world.close();
  await kzg.close();
}

/** Accounts that each chain has. */
const SYSTEM = /^0x(0{20}|4e59b448|000f3df6|00000961|0000bbdd|0000f908)/;

/** One of each message that is signed, by an account of the sandbox. */
async function signedMessages(settlement: PortalIdentity) {
  const owner = at(USERS, 0).owner;
  const [hash, other] = [`0x${"a1".repeat(32)}`, `0x${"b2".repeat(32)}`];
  const [recipient, deadline] = [lower(at(USERS, 1).owner.address), 4_000_000_000n];
  const batch = {
    history: hash,
    batchNumber: 3,
    batchRoot: other,
    vaultCount: 5,
    dataHash: hash,
    epoch: 1n,
  };
  const listed = { vaultId: 1n, withdrawnBefore: 0n, quantity: 1n };
  const session = { owner: owner.address, key: recipient };
  const counts = { countValidium: 2, countRollup: 1 };
  const messages: Record<keyof typeof MESSAGES, object> = {
    validiumBatch: batch,
    transferBatch: batch,
    attestationRequest: { ...batch, sequence: 4n },
    consent: { ...batch, mode: "validium", content: hash, manifest: other, assetsHash: other },
    consentRequest: { ...batch, mode: "zk-rollup" },
    mirroredState: {
      sourceChainId: 1n,
      sourceContract: recipient,
      ...counts,
      commitment: hash,
      epoch: 1n,
    },
    withdrawalList: { vaults: [listed], recipient, deadline },
    cancellation: { signer: recipient, id: listed.vaultId },
    claim: { link: recipient, owner: owner.address },
    transfers: { transfers: [{ vaultId: 1n, amount: 0n, to: recipient }], deadline },
    session: { ...session, until: deadline, limit: 10n, assetType: `0x01${"a1".repeat(31)}` },
    sessionEnd: session,
  };
  const names = Object.keys(messages) as (keyof typeof MESSAGES)[];
  const all = names.map(async (name) => {
    const signature = await owner.signTypedData(
      MESSAGES[name](settlement, messages[name] as never) as never,
    );
    return { name, settlement, message: messages[name], signer: owner.address, signature };
  });
  return Promise.all(all);
}

if (!process.argv.includes("surface")) {
  await rm(GOLDEN, { recursive: true, force: true });
  await mkdir(join(GOLDEN, "kits"), { recursive: true });
  await writeStore();
  await writeAdopted();
  await rm(join(GOLDEN, "adopted-elsewhere"), { recursive: true });
  await writeFromChain();
  await file("journal.json", `${await journalDump()}\n`);
}
await file("openapi.json", `${JSON.stringify(httpDocument())}\n`);
await file("exports.json", textOf(await exportedNames()));
await file("surface.json", `${JSON.stringify(await surface())}\n`);
await file("contracts.json", `${JSON.stringify({ code: pinnedCode() })}\n`);
