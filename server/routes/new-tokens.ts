import { v7 as uuidv7 } from "uuid";
import { parseUnits, zeroAddress } from "viem";
import { z } from "zod";
import * as core from "../../core/index.ts";
import { assetType } from "../../core/internal.ts";
import {
  assetIdOf,
  LOCK_MINTER,
  NO_CAP,
  type OwnToken,
  readTokenCreation,
  registrationCalldata,
  tokenCreationInput,
} from "../../core/l1/own-token.ts";
import { invalid, ServerError } from "../http/errors.ts";
import type { TokenChain } from "../service.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";
import type { Shown } from "./api/writer.ts";
import { asset } from "./assets.ts";
import { applicationOf } from "./console.ts";
import { originOf } from "./owner.ts";

const newTokenBody = s.requestComponent("NewToken", {
  standard: s.standard,
  name: s.textUpTo(200),
  symbol: s.textUpTo(50),
  admin: s.address.describe("Who administers the token: its metadata, its royalty, its minter."),
  cap: z
    .string()
    .regex(/^\d{1,20}(?:\.\d{1,9})?$/, "Give whole tokens, such as 1000000.")
    .optional()
    .describe("ERC-20: the most whole tokens that can ever exist; default no limit."),
  uri: s
    .textUpTo(2_000)
    .optional()
    .describe(
      "What stands before each id (ERC-721), or a template with `{id}` (ERC-1155). Default: this server.",
    ),
  royalty: z
    .strictObject({
      receiver: s.address,
      percent: z
        .string()
        .regex(/^(?:100|\d{1,2}(?:\.\d{1,2})?)$/, "Give percent from 0 to 100, such as 2.5."),
    })
    .optional()
    .describe("ERC-721 and ERC-1155: what marketplaces ask of each sale (ERC-2981)."),
  transferable: z
    .boolean()
    .optional()
    .describe("Whether owners can give vaults away; default false."),
});

const tokenCreation = s.responseComponent("TokenCreation", {
  assetId: s.outUuid.describe("The id that the asset will have."),
  chainId: s.outDecimal,
  data: s.outHex.describe("Input of the transaction that creates the token. It has no receiver."),
});

const call = z.strictObject({ to: s.outAddress, data: s.outHex });

const tokenProgress = s.responseComponent("TokenProgress", {
  status: z
    .enum(["sent", "created", "registered", "added"])
    .describe(
      "`sent`: the chain has not mined it. `created`: `lock` and `register` are missing. `registered`: not final yet. `added`: the asset is here.",
    ),
  contractAddress: s.outAddress.nullable(),
  lock: call
    .extend({ from: s.outAddress })
    .nullable()
    .describe("Makes the settlement contract the only minter for ever. From the admin."),
  register: call.nullable().describe("Puts the token into the settlement contract's registry."),
  asset: asset.nullable(),
});

const PATH = "/console/v1/tokens";
/** The decimals of ERC-20 tokens. Amounts here keep nine of them. */
const DECIMALS = 18;
const QUANTUM = 10n ** 9n;

export const newTokenEndpoints: readonly Endpoint[] = [
  endpoint("Console", "person", `POST ${PATH}`, "prepareToken", {
    right: "assets",
    summary: "The transaction by which an admin's wallet creates a token for the application",
    body: newTokenBody,
    example: {
      standard: "erc721",
      name: "Shields",
      symbol: "SHLD",
      admin: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    },
    success: json(
      200,
      "The transaction. Nothing changes until the wallet sends it.",
      tokenCreation,
    ),
    errors: ["new_tokens_off"],
    handle({ engine, service, signedIn, body, request }) {
      if (service.newTokens === undefined) throw new ServerError("new_tokens_off");
      const to = { applicationId: applicationOf(signedIn), salt: uuidv7() };
      const assetId = assetIdOf(to);
      const template = body.standard === "erc1155" ? "{id}" : "";
      const uri = `${originOf(request, service).origin}/public/v1/metadata/${assetId}/${template}`;
      const { contract, chainId } = engine.settlement;
      return {
        assetId,
        chainId,
        data: tokenCreationInput(contract, { uri, ...tokenOf(body) }, to),
      };
    },
  }),
  endpoint("Console", "person", `PUT ${PATH}/{txHash}`, "addToken", {
    right: "assets",
    summary: "How far the token of a transaction is; adds its asset once the registration is final",
    success: json(200, "The progress, and the transactions that are missing.", tokenProgress),
    errors: ["new_tokens_off", "asset_exists", "l1_failed"],
    async handle({ engine, service: { newTokens }, signedIn, params: { txHash }, request }) {
      const chain = await newTokens?.();
      if (chain?.creation === undefined) throw new ServerError("new_tokens_off");
      return await progressOf(
        engine,
        chain as Required<typeof chain>,
        applicationOf(signedIn),
        txHash,
        () => request.account?.askNode(),
      );
    },
  }),
];

/**
 * How far the token of a transaction is, and the transactions that it still needs; adds its asset
 * once the registration is final. The transaction names the application, so nobody adds another's
 * token. Rejects with `validation_failed` for another transaction, `asset_exists`, `l1_failed`.
 *
 * @param pay - called before each question to the chain's node
 */
async function progressOf(
  engine: core.Engine,
  chain: TokenChain,
  applicationId: string,
  txHash: core.Hash,
  pay: () => void,
): Promise<Shown<z.output<typeof tokenProgress>>> {
  const { contract: minter, chainId } = engine.settlement;
  const at = { contractAddress: null, lock: null, register: null, asset: null };
  pay();
  const created = await chain.creation(txHash);
  if (created === null) return { ...at, status: "sent" };
  const token = readTokenCreation(minter, created.input);
  // An issuer could hold up batches with the mints of others.
  if (token?.applicationId !== applicationId || token.issuer !== zeroAddress)
    throw new core.MintmarkError("validation_failed", NOT_OURS);
  const { contract: contractAddress } = created;
  const id = {
    chainId,
    assetType: assetType(token.standard, contractAddress, token.quantum ?? 1n),
  };
  pay();
  if ((await chain.isMinter(contractAddress)) !== true)
    throw new core.MintmarkError("validation_failed", NOT_MINTER);
  pay();
  const { minterLocked } = await chain.token(contractAddress, token.standard);
  pay();
  const isRegistered = (await chain.registration(chainId, id.assetType)) !== null;
  if (!minterLocked || !isRegistered) {
    const lock = minterLocked
      ? null
      : { from: token.admin, to: contractAddress, data: LOCK_MINTER };
    const data = registrationCalldata(chainId, contractAddress, token);
    return {
      ...at,
      contractAddress,
      status: "created",
      lock,
      register: isRegistered ? null : { to: minter, data },
    };
  }
  const registered = { ...at, contractAddress, status: "registered" } as const;
  pay();
  const final = await chain.finalizedBlockNumber();
  if (created.blockNumber > final) return registered;
  pay();
  if ((await chain.registration(chainId, id.assetType, final)) === null) return registered;
  // The last refusal comes before the asset, so that none is left half recorded.
  pay();
  const transferable = await chain.isTransferable(id);
  const assetId = assetIdOf(token);
  await addAsset(engine, token, assetId, contractAddress);
  await engine.operator.recordRegistered(assetId, { minterLocked, transferable });
  return {
    ...at,
    contractAddress,
    status: "added",
    asset: await engine.assets.get(applicationId, assetId),
  };
}

const NOT_MINTER =
  "Another account than the settlement contract mints this token. Create another token.";
const NOT_OURS =
  "This transaction did not create a token of this package for this application and this settlement contract. Create one with the form.";

/** Adds the asset, unless an earlier call did. */
async function addAsset(
  engine: core.Engine,
  token: NonNullable<ReturnType<typeof readTokenCreation>>,
  assetId: string,
  contractAddress: core.Address,
): Promise<void> {
  const {
    applicationId,
    standard,
    name,
    symbol,
    quantum = 1n,
    mintingBlobScheme = "mintmark",
    cap = NO_CAP,
  } = token;
  const decimals = standard === "erc20" ? DECIMALS : 0;
  const supplyCap = standard !== "erc20" || cap === NO_CAP ? null : cap / quantum;
  const facts = {
    standard,
    name,
    symbol,
    quantum,
    mintingBlobScheme,
    decimals,
    supplyCap,
    contractAddress,
  };
  try {
    await engine.assets.add({ ...facts, assetId, applicationId });
  } catch (error) {
    if (!(error instanceof core.MintmarkError) || error.code !== "asset_exists") throw error;
    const known = await engine.assets.get(applicationId, assetId).catch(() => null);
    if (known?.contractAddress !== contractAddress) throw error;
  }
}

/** Turns the form's answers into a token, with base units. */
function tokenOf({ cap, royalty, ...asked }: z.output<typeof newTokenBody>): OwnToken {
  const { standard } = asked;
  const misplaced = standard === "erc20" ? { uri: asked.uri, royalty } : { cap };
  for (const [name, value] of Object.entries(misplaced)) {
    if (value === undefined) continue;
    const detail = `An ${standard} has no ${name}.`;
    throw invalid(`/${name}`, detail, detail);
  }
  return {
    ...asked,
    ...(standard === "erc20" && { quantum: QUANTUM }),
    ...(cap !== undefined && { cap: parseUnits(cap, DECIMALS) }),
    ...(royalty && {
      royalty: { receiver: royalty.receiver, fraction: parseUnits(royalty.percent, 2) },
    }),
  };
}
