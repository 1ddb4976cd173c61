import { erc20Abi, erc721Abi, parseAbi } from "viem";
import type { L1Reader } from "../../core/ports.ts";
import type { Asked, Place } from "./campaign.ts";
import { at } from "./fixture.ts";

/** Everything is whole again: rounds until nothing is left to do. */
export async function settle(
  { near, places }: Asked,
  round: () => Promise<unknown>,
  mature: () => Promise<void>,
) {
  const { engine, principal } = near;
  const withdrawals = places.flatMap((place) => place.withdrawals);
  for (let attempt = 0; attempt < 60; attempt++) {
    await mature();
    await round();
    const statuses = await Promise.all(
      withdrawals.map(
        async (id) => (await engine.withdrawals.get(principal.applicationId, id)).status,
      ),
    );
    const state =
      JSON.stringify(await engine.batches.committedState(), asText) ===
      JSON.stringify(engine.batches.state(), asText);
    if (state && statuses.every((status) => status === "settled" || status === "finalized")) return;
  }
  throw new Error("not everything was settled after sixty rounds without a fault");
}

function asText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}` : value;
}

/** Nothing lost, nothing minted twice: vault by vault, and token by token. */
export async function compare(
  { near, places, vaults }: Asked,
  l1: Pick<L1Reader, "state">,
): Promise<void> {
  const { engine, principal } = near;
  same("the state on L1", await l1.state(), {
    ...engine.batches.state(),
    history: engine.operator.history(),
  });
  const paid = new Map(places.map((place) => [place, new Map<string, bigint>()]));
  for (const [vaultId, { place, standard, tokenId, amount, withdrawn }] of vaults) {
    const vault = await engine.vaults.get(principal.applicationId, vaultId);
    same(`amount of vault ${vaultId}`, vault.amount, amount);
    same(`what was withdrawn of vault ${vaultId}`, vault.withdrawnBalance, withdrawn);
    const there = await place.portal.withdrawn(vaultId, standard);
    same(`what its chain says was withdrawn of vault ${vaultId}`, there, withdrawn);
    const tokens = paid.get(place);
    const token = `${standard} ${tokenId}`;
    tokens?.set(token, (tokens.get(token) ?? 0n) + withdrawn);
  }
  for (const [place, tokens] of paid)
    await compareTokens(place, tokens, at(near.users, 0).owner.address);
  const { problems } = await engine.operator.verify();
  same("the problems that verify found", problems, []);
}

const erc1155Abi = parseAbi([
  "function balanceOf(address owner, uint256 id) view returns (uint256)",
]);

/** Compares what the owner holds of each token on a chain. */
async function compareTokens(
  { chain, tokens }: Place,
  paid: ReadonlyMap<string, bigint>,
  owner: `0x${string}`,
) {
  const { client } = chain;
  for (const [token, withdrawn] of paid) {
    const [standard, id = "0"] = token.split(" ") as ["erc20" | "erc721" | "erc1155", string];
    const { address = "0x", quantum = 1n } = tokens.get(standard) ?? {};
    const tokenId = BigInt(id);
    if (standard === "erc20") {
      const read = { abi: erc20Abi, address, functionName: "balanceOf", args: [owner] } as const;
      same("the ERC-20 balance", await client.readContract(read), withdrawn * quantum);
    } else if (standard === "erc1155") {
      const read = {
        abi: erc1155Abi,
        address,
        functionName: "balanceOf",
        args: [owner, tokenId],
      } as const;
      same(`the balance of item ${tokenId}`, await client.readContract(read), withdrawn);
    } else if (withdrawn === 1n) {
      const read = { abi: erc721Abi, address, functionName: "ownerOf", args: [tokenId] } as const;
      same(`the owner of token ${tokenId}`, await client.readContract(read), owner);
    }
  }
}

function same(what: string, found: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(found, asText), JSON.stringify(expected, asText)];
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
}
