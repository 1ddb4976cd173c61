import type { LocalAccount } from "viem";
import { getBalance } from "viem/actions";
import type { L1Committer } from "../ports.ts";
import { accountOn, toReceipt } from "./account.ts";
import { askL1, type L1Connection } from "./connection.ts";
import type { FeeOptions } from "./fees.ts";
import { type PayingPortal, portalOf } from "./portal.ts";
import { readsOf, type ViemReader } from "./reader.ts";
import { TransactionSender } from "./sender.ts";

/** Everything that an operator's own account can do on settlement contract and mirror alike. */
export interface OperatorPortal
  extends ViemReader,
    PayingPortal,
    Pick<L1Committer, "useUpNonces" | "earlierMined"> {
  /** Balance of the sending account, in wei. */
  operatorBalance(): Promise<bigint>;
}

/** `by` sends what only one of the two contracts takes. */
export function operatorOn(connection: L1Connection, account: LocalAccount, fees: FeeOptions) {
  const sender = new TransactionSender(connection, account, fees);
  const by = accountOn(connection, account, sender);
  const reads = readsOf(connection);
  const operator: OperatorPortal = {
    ...reads,
    ...portalOf(by, reads),

    operatorBalance: () =>
      askL1(`asking for the balance of ${account.address}`, () =>
        getBalance(connection.client, { address: account.address }),
      ),

    useUpNonces: (options = {}) =>
      askL1("using up nonces", async () => toReceipt(await sender.useUpNonces(options))),

    earlierMined: (signal) =>
      askL1("waiting for earlier transactions", () => sender.earlierMined(signal)),
  };
  return { by, operator };
}
