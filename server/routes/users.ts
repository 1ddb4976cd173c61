import { z } from "zod";
import { MintmarkError } from "../../core/index.ts";
import { idOfRequest } from "../http/idempotency.ts";
import { page } from "../schemas/common.ts";
import {
  balancePage,
  user,
  userBody,
  userPage,
  userParams,
  userQuery,
  usersBody,
  usersReply,
} from "../schemas/users.ts";
import { vaultPage } from "../schemas/vaults.ts";
import { balanceToWire, pageToWire, userToWire, vaultToWire } from "../schemas/wire.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

export const userEndpoints: readonly Endpoint[] = [
  endpoint("POST /api/v1/users", "createUser", {
    tag: "Users",
    access: "users",
    summary: "Register a user with the L1 address that owns its tokens",
    description: "Repeating it with the same id and address changes nothing and returns the same.",
    body: userBody,
    example: {
      userId: "6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a11",
      ownerAddress: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    },
    success: {
      status: 201,
      description: "The user.",
      schemas: [user],
      headers: { Location: "Path of the user." },
    },
    errors: ["user_exists"],
    async handle({ service: { engine }, principal, body, request, reply }) {
      const user = { ...idOfRequest("userId", principal, request), ...body };
      const created = await engine.users.create(principal.applicationId, user).catch((error: unknown) => {
        const isReused = error instanceof MintmarkError && error.code === "user_exists" && body.userId === undefined;
        throw isReused ? new MintmarkError("idempotency_key_reused") : error;
      });
      reply.header("location", `/api/v1/users/${created.userId}`);
      return userToWire(created);
    },
  }),
  endpoint("POST /api/v1/users/bulk", "createUsers", {
    tag: "Users",
    access: "users",
    summary: "Register up to 1,000 users, all or none",
    description:
      "An entry without `userId` is the first user of its owner address, created if there is none; so repeating the request changes nothing.",
    body: usersBody,
    cost: countUsers,
    example: {
      users: [
        { ownerAddress: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", reference: "customer-17" },
        { ownerAddress: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc" },
      ],
    },
    success: { status: 201, description: "The users, new and existing.", schemas: [usersReply] },
    errors: ["user_exists"],
    async handle({ service: { engine }, principal, body }) {
      return { users: (await engine.users.createAll(principal.applicationId, body.users)).map(userToWire) };
    },
  }),
  endpoint("GET /api/v1/users", "listUsers", {
    tag: "Users",
    access: "read",
    summary: "Users of the application, by owner or by reference",
    query: userQuery,
    success: { status: 200, description: "One page.", schemas: [userPage] },
    async handle({ service: { engine }, principal, query }) {
      return pageToWire(await engine.users.list(principal.applicationId, query), userToWire);
    },
  }),
  endpoint("GET /api/v1/users/{userId}", "getUser", {
    tag: "Users",
    access: "read",
    summary: "One user",
    params: userParams,
    success: { status: 200, description: "The user.", schemas: [user] },
    errors: ["user_not_found"],
    async handle({ service: { engine }, principal, params }) {
      return userToWire(await engine.users.get(principal.applicationId, params.userId));
    },
  }),
  endpoint("GET /api/v1/users/{userId}/vaults", "listUserVaults", {
    tag: "Users",
    access: "read",
    summary: "Vaults of one user, oldest first",
    params: userParams,
    query: z.strictObject(page),
    success: { status: 200, description: "One page.", schemas: [vaultPage] },
    errors: ["user_not_found"],
    async handle({ service: { engine }, principal: { applicationId }, params: { userId }, query }) {
      await engine.users.get(applicationId, userId);
      return pageToWire(await engine.vaults.list(applicationId, { ...query, userId }), vaultToWire);
    },
  }),
  endpoint("GET /api/v1/users/{userId}/balances", "listUserBalances", {
    tag: "Users",
    access: "read",
    summary: "A user's holdings by token, in the order of first mints",
    params: userParams,
    query: z.strictObject(page),
    success: { status: 200, description: "One page.", schemas: [balancePage] },
    errors: ["user_not_found"],
    async handle({ service: { engine }, principal: { applicationId }, params: { userId }, query }) {
      return pageToWire(await engine.vaults.balances(applicationId, userId, query), balanceToWire);
    },
  }),
];

/** Users in a well-formed body. */
function countUsers(body: unknown): number {
  const users = (body as { users?: unknown } | null)?.users;
  return Array.isArray(users) ? Math.max(1, users.length) : 1;
}
