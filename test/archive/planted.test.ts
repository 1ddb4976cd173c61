import { type Hex, toHex } from "viem";
import { afterEach, expect, test } from "vitest";
import { deriveBatch } from "../../core/archive/derive.ts";
import { type VoidedDuplicate, Watcher } from "../../core/archive/index.ts";
import { exportExitKit } from "../../core/exit/export.ts";
import type { VaultId } from "../../core/index.ts";
import type { SealedBatch } from "../../core/ports.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { batchRoot, manifestRoot } from "../../core/protocol/manifest.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { deployContract, lower } from "../../scripts/deploy/deployer.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { at, commitUnseen, createWorld, type World } from "../settlement/fixture.ts";
import { openArchive } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

const IDS = ["1", "2", "3"];

function batchOf(batchNumber: number, token: Hex, texts: readonly string[]): SealedBatch {
  const owner = lower(at(USERS, 0).owner.address);
  const common = { chainId: 31_337n, owner, amount: 1n, assetType: assetType("erc721", token, 1n) };
  const data = encodeBatchData(texts.map((text) => ({ ...common, mintingBlob: toHex(text) })));
  return { mode: "validium", batchNumber, ...deriveBatch("validium", batchNumber, data), data };
}

async function commit(batch: SealedBatch): Promise<VaultId[]> {
  await commitUnseen(world.l1, batch);
  const { batchNumber, mode, vaultCount } = batch;
  return Array.from({ length: vaultCount }, (_, slot) => packVaultId({ mode, batchNumber, slot }));
}

test.each(["that ran all the time", "that begins when all is over"])(
  "a watcher %s voids every duplicate of a token whose ids were planted before it was registered",
  async (name) => {
    world = await createWorld();
    const { chain, l1 } = world;
    const { address: token } = await deployContract(chain.by, "MintableERC721", [
      ...["Late", "LATE", "", 1],
      ...[
        { receiver: `0x${"00".repeat(20)}`, fraction: 0n },
        chain.by.account.address,
        chain.settlement.address,
      ],
      `0x${"00".repeat(20)}`,
      false,
    ]);
    const batches = [
      batchOf(0, token, IDS),
      batchOf(1, token, IDS),
      batchOf(2, token, IDS),
    ] as const;
    const source = {
      name: "whoever has it",
      batchData: async (_: unknown, number: number) => at(batches, number).data,
    };
    const archive = await openArchive({ l1 });
    const voided: VoidedDuplicate[] = [];
    const { deployedAtBlock: fromBlock } = chain.settlement;
    const watcher = new Watcher({
      archive,
      l1,
      fromBlock,
      sources: [source],
      onVoided: (each) => voided.push(each),
    });
    const watch = async () => {
      await chain.mine(20);
      await watcher.round();
    };
    const runs = name === "that ran all the time";

    // L1 takes no manifest that names the token, so the planted vaults are in no batch that anybody
    // can prove.
    const [first] = batches;
    await expect(commit(first)).rejects.toThrow("AssetNotRegistered");
    const hidden = batchRoot("validium", manifestRoot([]), first.content);
    const planted = await commit({ ...first, assets: [], batchRoot: hidden });
    if (runs) await watch();
    await l1.registerAsset({
      standard: "erc721",
      chainId: 31_337n,
      contractAddress: token,
      quantum: 1n,
      mintingBlobScheme: "mintmark",
    });
    const honest = await commit(batches[1]);
    if (runs) await watch();
    const stolen = await commit(batches[2]);
    await watch();

    expect(voided.map(({ earlier, later }) => [earlier, later]).sort()).toEqual(
      honest.map((earlier, i) => [earlier, at(stolen, i)]).sort(),
    );
    for (const vaultId of stolen) expect(await l1.withdrawn(vaultId, "erc721")).toBe(1n);
    for (const vaultId of [...planted, ...honest])
      expect(await l1.withdrawn(vaultId, "erc721")).toBe(0n);
    await watch();
    expect(voided.length).toBe(IDS.length);
    await exportExitKit(await archive.vaultProof(at(honest, 0)), l1);
    expect(await archive.missing()).toEqual([]);
    await expect(archive.vaultProof(at(planted, 0))).rejects.toMatchObject({
      code: "vault_not_found",
    });

    await archive.close();
  },
);
