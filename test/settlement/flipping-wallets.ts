import { type Hex, toHex } from "viem";
import type { Uuid } from "../../core/index.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { at, type Request, type World } from "./fixture.ts";

/** Says yes to every question about a signature. */
const SAYS_YES = "0x631626ba7e60e01b5f5260205ff3";
/** Burns all the gas that it gets. */
const BURNS = "0xfe";

/**
 * Wallet contracts of as many users, each with a withdrawal that it has signed. They take each
 * trial and each estimate, and turn just before the chain gets the transaction.
 */
export async function flippingWallets(world: World, count: number) {
  const { chain, engine, principal } = world;
  const wallets = Array.from({ length: count }, (_, i) => toHex(0xf11b_0000 + i, { size: 20 }));
  const become = async (code: Hex) => {
    for (const wallet of wallets) await chain.rpc("hardhat_setCode", [wallet, code]);
  };
  const theirs: { readonly vaultId: bigint; readonly their: World }[] = [];
  for (const address of wallets) {
    const { userId } = await engine.users.create(principal.applicationId, {
      ownerAddress: address,
    });
    const their = { ...world, users: [{ userId, owner: { ...at(USERS, 0).owner, address } }] };
    theirs.push({ their, vaultId: await their.mint("erc20", "validium") });
  }
  const request = (async (call: Parameters<Request>[0]) => {
    if (call.method === "eth_sendRawTransaction") await become(BURNS);
    return chain.request(call as never);
  }) as Request;
  return {
    /** Stands between the operator and the chain. */
    request,
    /** Requests a withdrawal of each. Returns their ids. */
    async ask(deadline?: bigint): Promise<Uuid[]> {
      await become(SAYS_YES);
      const asked: Uuid[] = [];
      for (const { their, vaultId } of theirs) {
        asked.push((await their.requestWithdrawal(vaultId, 1n, deadline)).withdrawalId);
      }
      return asked;
    },
    turnBack: () => become(SAYS_YES),
  };
}
