import { transaction, transactionPage, transactionQuery } from "../schemas/transactions.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";

export const transactionEndpoints: readonly Endpoint[] = [
  endpoint("Transactions", "read", "GET /api/v1/transactions", "listTransactions", {
    summary: "Mints, withdrawals and transfers of the application, newest first",
    description: "A page can be shorter than `limit` even if there is a next one.",
    query: transactionQuery,
    success: json(200, "One page.", transactionPage),
    inTurn: true,
    handle: ({ engine, applicationId, query }) => engine.transactions.list(applicationId, query),
  }),
  endpoint("Transactions", "read", "GET /api/v1/transactions/{transactionId}", "getTransaction", {
    summary: "One transaction",
    success: json(200, "The transaction.", transaction),
    errors: ["transaction_not_found"],
    handle: ({ engine, applicationId, params }) => engine.transactions.get(applicationId, params.transactionId),
  }),
];
