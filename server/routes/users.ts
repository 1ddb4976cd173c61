import { z } from "zod";
import { MAX_NEW_USERS, MintmarkError } from "../../core/index.ts";
import { idOfRequest } from "../http/idempotency-key.ts";
import { type Endpoint, endpoint, entriesOf, json, paged } from "./api/endpoint.ts";
import { examining } from "./api/examined.ts";
import * as s from "./api/fields.ts";
import { vaultPages } from "./vaults.ts";

export const user = s.responseComponent("User", {
  userId: s.outUuid,
  ownerAddress: s.outAddress,
  reference: z.string().nullable().describe("Your own name for the user."),
  createdAt: s.outTime,
});
const userQuery = z.strictObject({
  ownerAddress: s.address.optional(),
  reference: s.reference.optional(),
  ...s.orderedPage,
});

const newUser = z.strictObject({
  userId: s.uuid.optional().describe("Your own id for the user; default a new one."),
  ownerAddress: s.address.describe("The L1 address that owns the user's mints. It never changes."),
  reference: s.reference.optional().describe("Your own name for the user; need not be unique."),
});

const usersBody = s.requestComponent("NewUsers", {
  users: z
    .array(newUser)
    .min(1, "Give at least one user.")
    .max(MAX_NEW_USERS, `Give at most ${MAX_NEW_USERS} users.`),
});

export const balance = s.responseComponent("Balance", {
  assetId: s.outUuid,
  ...s.outToken,
  tokenId: s.outDecimal.nullable(),
  mintingBlob: s.outHex,
  amount: s.outDecimal,
  amountDecimal: s.outAmountDecimal,
  available: s.outDecimal,
  withdrawn: s.outDecimal,
});

export const userEndpoints: readonly Endpoint[] = [
  endpoint("Users", "users", "POST /api/v1/users", "createUser", {
    summary: "Register a user with the L1 address that owns its tokens",
    description: "Repeating it with the same id and address changes nothing and returns the same.",
    body: s.requestComponent("NewUser", newUser),
    example: {
      userId: "6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a11",
      ownerAddress: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    },
    success: { ...json(201, "The user.", user), headers: { Location: "Path of the user." } },
    errors: ["user_exists"],
    async handle({ engine, applicationId, principal, body, request, reply }) {
      const { userId } = idOfRequest("userId", principal, request);
      const isOfKey = userId !== undefined && body.userId === undefined;
      const user = isOfKey ? { ...body, userId } : body;
      const created = await engine.users.create(applicationId, user).catch((error: unknown) => {
        const isReused = isOfKey && error instanceof MintmarkError && error.code === "user_exists";
        throw isReused ? new MintmarkError("idempotency_key_reused") : error;
      });
      if (isOfKey && created.reference !== (body.reference ?? null))
        throw new MintmarkError("idempotency_key_reused");
      reply.header("location", `/api/v1/users/${created.userId}`);
      return created;
    },
  }),
  endpoint("Users", "users", "POST /api/v1/users/bulk", "createUsers", {
    summary: "Register up to 1,000 users, all or none",
    description:
      "An entry without `userId` is the first user of its owner address, created if there is none; so repeating the request changes nothing.",
    body: usersBody,
    cost: entriesOf("users"),
    example: {
      users: [
        { ownerAddress: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", reference: "customer-17" },
        { ownerAddress: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc" },
      ],
    },
    success: json(
      201,
      "The users, new and existing.",
      s.responseComponent("CreatedUsers", { users: z.array(user).describe("In request order.") }),
    ),
    errors: ["user_exists"],
    handle: async ({ engine, applicationId, body }) => ({
      users: await engine.users.createAll(applicationId, body.users),
    }),
  }),
  endpoint("Users", "read", "GET /api/v1/users", "listUsers", {
    summary: "Users of the application, by owner or by reference",
    ...paged("UserPage", user),
    query: userQuery,
    handle: ({ engine, applicationId, query }) => engine.users.list(applicationId, query),
  }),
  endpoint("Users", "read", "GET /api/v1/users/{userId}", "getUser", {
    summary: "One user",
    success: json(200, "The user.", user),
    handle: ({ engine, applicationId, params }) => engine.users.get(applicationId, params.userId),
  }),
  endpoint("Users", "read", "GET /api/v1/users/{userId}/vaults", "listUserVaults", {
    summary: "Vaults of one user, oldest first",
    ...vaultPages,
    inTurn: true,
    async handle({ engine, applicationId, params: { userId }, query, ...call }) {
      await engine.users.get(applicationId, userId);
      return await examining(call, (options) =>
        engine.vaults.list(applicationId, { ...query, userId }, options()),
      );
    },
  }),
  endpoint("Users", "read", "GET /api/v1/users/{userId}/balances", "listUserBalances", {
    summary: "A user's holdings by token, in the order of first mints",
    ...paged("BalancePage", balance),
    inTurn: true,
    handle: ({ engine, applicationId, params: { userId }, query, ...call }) =>
      examining(call, (options) => engine.vaults.balances(applicationId, userId, query, options())),
  }),
];
