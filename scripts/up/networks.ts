import type { Chain } from "viem";

export type Network = Awaited<ReturnType<typeof networks>>[number];

/** Time until a block is final, in words. */
const ETHEREUM = { finality: "about 15 minutes" } as const;
/** A rollup's block is final when Ethereum has finalized the block with its data. */
const ROLLUP = { finality: "about 20 minutes, by Ethereum's finality" } as const;
const POLYGON = { finality: "some seconds" } as const;

/** viem's export name for each network, and facts that viem lacks. */
const KNOWN = {
  ethereum: ["mainnet", ETHEREUM],
  sepolia: ["sepolia", ETHEREUM],
  hoodi: ["hoodi", ETHEREUM],
  base: ["base", ROLLUP],
  "base-sepolia": ["baseSepolia", ROLLUP],
  optimism: ["optimism", ROLLUP],
  "optimism-sepolia": ["optimismSepolia", ROLLUP],
  arbitrum: ["arbitrum", ROLLUP],
  "arbitrum-sepolia": ["arbitrumSepolia", ROLLUP],
  polygon: ["polygon", POLYGON],
  "polygon-amoy": ["polygonAmoy", POLYGON],
} as const;

export const NETWORK_NAMES = Object.keys(KNOWN);

/** The known networks; asynchronous, because viem's list takes long to load. */
export async function networks() {
  const chains = await import("viem/chains");
  return Object.entries(KNOWN).map(([name, [key, facts]]) => {
    const chain: Chain = chains[key];
    const {
      name: title,
      id: chainId,
      testnet: isTest = false,
      nativeCurrency,
      rpcUrls,
      blockExplorers,
    } = chain;
    // A public RPC limits requests, so a server needs one of its own.
    const [rpc = ""] = rpcUrls.default.http;
    const explorer = blockExplorers?.default.url;
    return { name, title, chainId, rpc, explorer, symbol: nativeCurrency.symbol, isTest, ...facts };
  });
}
