import { connectL1 } from "../../core/l1/index.ts";
import * as api from "../../server/client/index.ts";
import type { SandboxDescription } from "../sandbox/sandbox.ts";
import type { Choice } from "./choice.ts";
import { until } from "./until.ts";

/**
 * The owner burns a token on L1, whose contract makes a vault of it in the same transaction, and
 * pays for that. Resolves with the vault once the engine has credited it.
 */
export async function enter(
  client: api.MintmarkClient,
  { rpcUrl, contract }: SandboxDescription,
  { standard, asset, user, vault, owner, gain }: Choice,
) {
  const l1 = await connectL1({ rpc: rpcUrl, contract, account: owner, pollingMs: 100 });
  const { txHash } = await l1.enter({
    token: asset.contractAddress,
    standard,
    owner: user.ownerAddress,
    tokenId: vault.tokenId === null ? null : BigInt(vault.tokenId),
    amount: gain,
  });
  const query = { userId: user.userId, assetId: asset.assetId, limit: 100 };
  const credited = async () => {
    const { data } = await api.answer(client.GET("/api/v1/deposits", { params: { query } }));
    return data.find((deposit) => deposit.l1TxHash === txHash);
  };
  const deposit = await until("the token's vault", credited, (found) => found !== undefined);
  const path = { vaultId: deposit?.vaultId ?? "" };
  return {
    txHash,
    vault: await api.answer(client.GET("/api/v1/vaults/{vaultId}", { params: { path } })),
  };
}
