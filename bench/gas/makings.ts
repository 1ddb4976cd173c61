import { type Address, type Hex, parseEventLogs, toHex } from "viem";
import { provenVaultArguments, renewalArguments, STANDARD_VALUE } from "../../core/l1/arguments.ts";
import type { VaultContent } from "../../core/ports.ts";
import { placeVaults } from "../../core/protocol/batch-data.ts";
import { renewalListTypedData } from "../../core/protocol/typed-data.ts";
import { packMadeVaultId } from "../../core/protocol/vault.ts";
import { account, CHAIN_ID, type GasChain, openGasChain, owners } from "./chain.ts";
import { sendCalldata } from "./commits.ts";
import { type Measurement, measurement, type Section } from "./report.ts";
import { trades } from "./trades.ts";

const UNITS_AIM = 90_000;
const ID_AIM = 120_000;
const CARD_EXIT_AIM = 106_000;
const COIN_EXIT_AIM = 90_000;
const RENEWAL_AIM = 25_000;
const BATCH_VAULTS = 1_024;
const SMALL_VAULTS = 20;
const DEADLINE = 2n ** 40n;
/** Holders of each token. Each enters once, and has given all that it held. */
const HOLDERS = 4;

export async function makingSection(): Promise<Section> {
  return {
    title: "Vaults that L1 makes",
    method: `A holder enters all its units of one of this project's tokens. An exit is the same holder's own call for such a vault,
the storage word shared. The tokens of the escrows are OpenZeppelin's. Renewed and traded vaults lie in a batch of 1,024.
A trade is one ERC-721 for ERC-20 units, with both owners' signatures.`,
    unit: "transaction",
    measurements: [
      ...(await entries()),
      ...(await escrows()),
      ...(await renewals()),
      ...(await trades()),
    ],
  };
}

async function entries(): Promise<Measurement[]> {
  const chain = await openGasChain();
  const { erc20, erc721, erc1155 } = chain.tokens;
  const holders = owners(HOLDERS, "holder");
  const slots = [erc20, erc721, erc1155].flatMap(({ type, standard }) =>
    holders.map((owner, i) => ({
      chainId: CHAIN_ID,
      assetType: type,
      owner,
      amount: standard === "erc721" ? 1n : 100n,
      mintingBlob: standard === "erc20" ? ("0x" as const) : toHex(String(100_000 + i)),
    })),
  );
  // A batch's manifest ascends, and its data is written in the order of its slots.
  const { hash, proofOf } = await sendCalldata(chain, slots, 0);
  const header = await chain.header(hash);
  for (const vault of placeVaults(slots, "zk-rollup", 0) as readonly VaultContent[]) {
    const by = await chain.act(vault.owner);
    const proven = provenVaultArguments({ ...proofOf(vault), header });
    await chain.gasOf(chain.state.write.withdraw([...proven, vault.amount, vault.owner], by));
  }
  const coin = await chain.viem.getContractAt("MintableERC20", erc20.address);
  const card = await chain.viem.getContractAt("MintableERC721", erc721.address);
  const item = await chain.viem.getContractAt("MintableERC1155", erc1155.address);
  await chain.gasOf(coin.write.lockMinter());
  await chain.gasOf(card.write.lockMinter());
  await chain.gasOf(item.write.lockMinter());
  const measured: Measurement[] = [];
  for (const [i, owner] of holders.entries()) {
    const by = await chain.act(owner);
    const id = BigInt(100_000 + i);
    const cardMade = await made(chain, await card.write.enter([owner, id], by));
    const coinMade = await made(chain, await coin.write.enter([owner, 100n], by));
    const itemMade = await made(chain, await item.write.enter([owner, id, 100n], by));
    if (i === 0) measured.push(measurement("ERC-721 entered, the asset's first", cardMade.gas));
    if (i === HOLDERS - 1)
      measured.push(
        measurement("ERC-721 entered", cardMade.gas, 1, ID_AIM),
        measurement("ERC-20 entered", coinMade.gas, 1, UNITS_AIM),
        measurement("ERC-1155 entered", itemMade.gas),
      );
    const exits = [await exit(chain, cardMade, by), await exit(chain, coinMade, by)] as const;
    if (i === HOLDERS - 1)
      measured.push(
        measurement("exit of an entered ERC-721", exits[0], 1, CARD_EXIT_AIM),
        measurement("exit of entered ERC-20 units", exits[1], 1, COIN_EXIT_AIM),
      );
  }
  return measured;
}

/** Escrows take OpenZeppelin's tokens, and pay them out. */
async function escrows(): Promise<Measurement[]> {
  const chain = await openGasChain();
  const { viem, state } = chain;
  const factory = await viem.deployContract("EscrowFactory");
  const [coin, card] = [
    await viem.deployContract("PlainERC20"),
    await viem.deployContract("PlainERC721"),
  ];
  const [coinArgs, cardArgs] = [
    [state.address, coin.address, 1n],
    [state.address, card.address],
  ] as const;
  const [coinEscrow, cardEscrow] = [
    await viem.getContractAt("EscrowERC20", (await factory.simulate.createERC20(coinArgs)).result),
    await viem.getContractAt(
      "EscrowERC721",
      (await factory.simulate.createERC721(cardArgs)).result,
    ),
  ];
  const created = [
    await chain.gasOf(factory.write.createERC20(coinArgs)),
    await chain.gasOf(factory.write.createERC721(cardArgs)),
  ] as const;
  await chain.gasOf(
    state.write.registerAsset([STANDARD_VALUE.erc20, CHAIN_ID, coinEscrow.address, 1n, 1]),
  );
  await chain.gasOf(
    state.write.registerAsset([STANDARD_VALUE.erc721, CHAIN_ID, cardEscrow.address, 1n, 2]),
  );
  let measured: Measurement[] = [];
  for (const [i, owner] of owners(HOLDERS, "holder of old tokens").entries()) {
    const by = await chain.act(owner);
    const id = BigInt(100_000 + i);
    await chain.gasOf(coin.write.mint([owner, 100n]));
    await chain.gasOf(card.write.mint([owner, id]));
    await chain.gasOf(coin.write.approve([coinEscrow.address, 100n], by));
    await chain.gasOf(card.write.approve([cardEscrow.address, id], by));
    const cardMade = await made(chain, await cardEscrow.write.enter([owner, id], by));
    const coinMade = await made(chain, await coinEscrow.write.enter([owner, 100n], by));
    measured = [
      measurement("ERC-721 entered into its escrow", cardMade.gas),
      measurement("ERC-20 entered into its escrow", coinMade.gas),
      measurement("exit of an ERC-721 from its escrow", await exit(chain, cardMade, by)),
      measurement("exit of ERC-20 units from their escrow", await exit(chain, coinMade, by)),
    ];
  }
  return [
    ...measured,
    measurement("creating the escrow of an ERC-20", created[0]),
    measurement("creating the escrow of an ERC-721", created[1]),
  ];
}

/** One owner's small vaults become one, under one signature that anybody brings. */
async function renewals(): Promise<Measurement[]> {
  const chain = await openGasChain();
  const owner = account("owner of small vaults");
  const others = owners(BATCH_VAULTS - SMALL_VAULTS, "owner of one vault");
  const slots = [...Array.from({ length: SMALL_VAULTS }, () => owner.address), ...others].map(
    (each, i) => ({
      chainId: CHAIN_ID,
      assetType: chain.tokens.erc20.type,
      owner: each,
      amount: BigInt(1 + i),
      mintingBlob: "0x" as const,
    }),
  );
  const { hash, proofOf } = await sendCalldata(chain, slots, 0);
  const header = await chain.header(hash);
  const vaults = (placeVaults(slots, "zk-rollup", 0) as readonly VaultContent[]).slice(
    0,
    SMALL_VAULTS,
  );
  const list = vaults.map(({ vaultId, amount }) => ({
    vaultId,
    withdrawnBefore: 0n,
    quantity: amount,
  }));
  const recipient = owner.address;
  const message = { vaults: list, recipient, deadline: DEADLINE };
  const signature = await owner.signTypedData(renewalListTypedData(chain.settlement, message));
  const authorization = { deadline: DEADLINE, signature, list };
  const args = renewalArguments(
    vaults.map((vault) => ({
      ...proofOf(vault),
      header,
      quantity: vault.amount,
      recipient,
      authorization,
    })),
  );
  const gas = await chain.gasOf(chain.state.write.renew(args));
  return [
    measurement(
      `${SMALL_VAULTS} ERC-20 vaults of one owner renewed as one, one signature`,
      gas,
      SMALL_VAULTS,
      RENEWAL_AIM,
    ),
  ];
}

/** The one vault that a transaction has made, as its events tell. */
async function made(chain: GasChain, hash: Hex) {
  const gas = await chain.gasOf(hash);
  const { logs } = await chain.client.getTransactionReceipt({ hash });
  const [vault] = parseEventLogs({ abi: chain.state.abi, eventName: "VaultMade", logs });
  const [event] = parseEventLogs({ abi: chain.state.abi, eventName: "Made", logs });
  if (vault === undefined || event === undefined) throw new Error("the entry made no vault");
  const { making, ...header } = event.args;
  const vaultId = packMadeVaultId({ making, slot: 0 });
  return { gas, vault: { ...vault.args, vaultId }, header: { ...header, committedAt: 0n } };
}

async function exit(
  { state, gasOf }: GasChain,
  { vault, header }: Awaited<ReturnType<typeof made>>,
  by: { readonly account: Address },
): Promise<number> {
  const held = { ...vault, chainId: CHAIN_ID };
  const path = { siblings: [], assetIndex: 0, assetSiblings: [] };
  return gasOf(state.write.withdraw([held, header, path, vault.amount, vault.owner], by));
}
