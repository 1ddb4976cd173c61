import { type Hex, parseEventLogs, toHex, zeroAddress } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { provenVaultArguments } from "../../core/l1/arguments.ts";
import { settlementArguments, type Trade } from "../../core/l1/trades.ts";
import type { ProvenVault, VaultContent } from "../../core/ports.ts";
import { placeVaults } from "../../core/protocol/batch-data.ts";
import { proveMadeVault } from "../../core/protocol/making.ts";
import { type OrderShare, orderTypedData } from "../../core/protocol/typed-data.ts";
import { account, CHAIN_ID, type GasChain, openGasChain, owners } from "./chain.ts";
import { sendCalldata } from "./commits.ts";
import { type Measurement, measurement } from "./report.ts";

const TOGETHER_AIM = 65_000;
const ALONE_AIM = 130_000;
const CARD_EXIT_AIM = 106_000;
const COIN_EXIT_AIM = 90_000;
const BATCH_VAULTS = 1_024;
const TOGETHER = 20;
/** Trades before those that are measured, and all trades. */
const FIRST = { aloneNew: 0, aloneShared: 1, shares: 2, together: 3, again: 3 + TOGETHER } as const;
const TRADES = FIRST.again + TOGETHER;
const PRICE = 250n;
const DEADLINE = 2n ** 40n;

/** A card of each seller against coins of each buyer, out of one batch. */
export async function trades(): Promise<Measurement[]> {
  const market = await openMarket();
  const { chain, settle } = market;
  const fee: readonly OrderShare[] = owners(2, "receiver of a share").map((to) => ({
    to,
    amount: 10n,
  }));
  const aloneNew = await settle(FIRST.aloneNew, 1);
  const aloneShared = await settle(FIRST.aloneShared, 1);
  const withShares = await settle(FIRST.shares, 1, fee);
  const together = await settle(FIRST.together, TOGETHER);
  const again = await settle(FIRST.again, TOGETHER);
  // The seller has the first slot of a trade, the buyer the second.
  const exits: number[] = [];
  for (const { proofAt } of [together, again])
    for (const slot of [0, 1]) exits.push(await exit(chain, proofAt(slot)));
  const [, , coins = 0, card = 0] = exits;
  return [
    measurement("trade alone, storage words new", aloneNew.gas),
    measurement("trade alone, storage words shared", aloneShared.gas, 1, ALONE_AIM),
    measurement("— the same, two shares", withShares.gas),
    measurement(`trade, ${TOGETHER} in one call, 40 owners`, together.gas, TOGETHER, TOGETHER_AIM),
    measurement("exit of a traded ERC-721", card, 1, CARD_EXIT_AIM),
    measurement("exit of traded ERC-20 units", coins, 1, COIN_EXIT_AIM),
  ];
}

async function openMarket() {
  const chain = await openGasChain();
  const terms = { transferable: true };
  const card = await chain.token("erc721", terms);
  const coin = await chain.token("erc20", { ...terms, name: "Gold", symbol: "GOLD" });
  const sellers = Array.from({ length: TRADES }, (_, i) => account(`seller ${i}`));
  const buyers = Array.from({ length: TRADES }, (_, i) => account(`buyer ${i}`));
  const bystanders = owners(BATCH_VAULTS / 2 - TRADES, "bystander");
  const cards = [...sellers.map(({ address }) => address), ...bystanders].map((owner, i) => ({
    chainId: CHAIN_ID,
    assetType: card.type,
    owner,
    amount: 1n,
    mintingBlob: toHex(String(100_000 + i)),
  }));
  const coins = [...buyers.map(({ address }) => address), ...bystanders].map((owner) => ({
    chainId: CHAIN_ID,
    assetType: coin.type,
    owner,
    amount: 1_000n,
    mintingBlob: "0x" as const,
  }));
  const slots = [...cards, ...coins];
  const { hash, proofOf } = await sendCalldata(chain, slots, 0);
  const header = await chain.header(hash);
  const vaults = placeVaults(slots, "zk-rollup", 0) as readonly VaultContent[];
  const proofAt = (slot: number) => ({ ...proofOf(vaults[slot] as VaultContent), header });

  const tradeAt = async (i: number, shares: readonly OrderShare[]): Promise<Trade> => {
    const sword = { token: card.address, id: BigInt(100_000 + i), amount: 1n };
    const price = { token: coin.address, id: 0n, amount: PRICE };
    const common = { taker: zeroAddress, withdrawnBefore: 0n, deadline: DEADLINE };
    const sideOf = async (
      by: PrivateKeyAccount,
      proof: ProvenVault,
      terms: Pick<Trade["maker"]["order"], "give" | "want" | "shares">,
    ) => {
      const order = { ...terms, ...common, vaultId: proof.vault.vaultId };
      const signature = await by.signTypedData(orderTypedData(chain.settlement, order));
      return { ...proof, order, quantum: 1n, signature };
    };
    const sale = { give: sword, want: price, shares };
    const purchase = { give: price, want: sword, shares: [] };
    return {
      maker: await sideOf(sellers[i] as PrivateKeyAccount, proofAt(i), sale),
      taker: await sideOf(buyers[i] as PrivateKeyAccount, proofAt(cards.length + i), purchase),
    };
  };
  const settle = async (first: number, count: number, shares: readonly OrderShare[] = []) => {
    const all = Array.from({ length: count }, (_, i) => tradeAt(first + i, shares));
    const args = settlementArguments(await Promise.all(all));
    return made(chain, await chain.state.write.settle(args));
  };
  return { chain, settle };
}

/** The vaults that a transaction has made, as its events tell. */
async function made(chain: GasChain, hash: Hex) {
  const gas = await chain.gasOf(hash);
  const { logs } = await chain.client.getTransactionReceipt({ hash });
  const { abi } = chain.state;
  const [event] = parseEventLogs({ abi, eventName: "Made", logs });
  if (event === undefined) throw new Error("the call made no vault");
  const vaults = parseEventLogs({ abi, eventName: "VaultMade", logs }).map(({ args }) => ({
    ...args,
    assetType: toHex(args.assetType, { size: 32 }),
  }));
  const making = {
    chainId: CHAIN_ID,
    making: Number(event.args.making),
    vaults,
    sequence: event.args.sequence,
  };
  return { gas, proofAt: (slot: number) => proveMadeVault(making, slot) };
}

async function exit({ act, state, gasOf }: GasChain, proof: ProvenVault): Promise<number> {
  const { vault } = proof;
  const by = await act(vault.owner);
  const args = [...provenVaultArguments(proof), vault.amount, vault.owner] as const;
  return gasOf(state.write.withdraw(args, by));
}
