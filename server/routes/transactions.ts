import { transaction, transactionPage, transactionParams, transactionQuery } from "../schemas/transactions.ts";
import { pageToWire, transactionToWire } from "../schemas/wire.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

export const transactionEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/transactions", "listTransactions", {
    tag: "Transactions",
    access: "read",
    summary: "Mints, withdrawals and transfers of the application, newest first",
    description: "A page can be shorter than `limit` even if there is a next one.",
    query: transactionQuery,
    success: { status: 200, description: "One page.", schemas: [transactionPage] },
    async handle({ service: { engine, turns }, principal, query }) {
      await turns.turn(principal.applicationId);
      return pageToWire(await engine.transactions.list(principal.applicationId, query), transactionToWire);
    },
  }),
  endpoint("GET /api/v1/transactions/{transactionId}", "getTransaction", {
    tag: "Transactions",
    access: "read",
    summary: "One transaction",
    params: transactionParams,
    success: { status: 200, description: "The transaction.", schemas: [transaction] },
    errors: ["transaction_not_found"],
    async handle({ service: { engine }, principal, params }) {
      return transactionToWire(await engine.transactions.get(principal.applicationId, params.transactionId));
    },
  }),
];
