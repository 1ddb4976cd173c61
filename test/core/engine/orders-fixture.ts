import type { PrivateKeyAccount } from "viem/accounts";
import { type OrderPreparation, type OrderRequest, ordersOf } from "../../../core/orders/index.ts";
import { orderTypedData } from "../../../core/protocol/index.ts";
import { type Fixture, OWNERS } from "./fixture.ts";

/** An order as the engine prepares it, signed by its maker. */
export async function signedOrder(
  { engine, tenant }: Pick<Fixture, "engine" | "tenant">,
  asked: OrderPreparation,
  signer: PrivateKeyAccount = OWNERS[0],
): Promise<OrderRequest> {
  const { order } = await ordersOf(engine).prepare(tenant.principal, asked);
  const signature = await signer.signTypedData(orderTypedData(engine.settlement, order));
  return { ...order, signature };
}
