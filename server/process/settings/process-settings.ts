import { readFileSync } from "node:fs";
import { z } from "zod";
import { ABOUT_DEPLOYMENT } from "./about.ts";
import { address, described, json, text, url, whole } from "./fields.ts";
import { SETTINGS } from "./settings.ts";

/**
 * Settings of the other processes and commands. Settings shared with the server are the server's
 * own.
 */

const port = SETTINGS.MINTMARK_PORT.unwrap();

const CHAIN = {
  MINTMARK_RPC_URL: url("the address of the settlement chain's RPC").describe(
    "The settlement chain's RPC.",
  ),
  MINTMARK_CONTRACT: SETTINGS.MINTMARK_CONTRACT,
  MINTMARK_FROM_BLOCK: SETTINGS.MINTMARK_FROM_BLOCK,
  MINTMARK_CONFIRMATIONS: SETTINGS.MINTMARK_CONFIRMATIONS,
};
const MIRROR = {
  MINTMARK_MIRROR_RPC_URL: url("the address of the RPC of the mirror's chain").describe(
    "The RPC of a mirror's chain.",
  ),
  MINTMARK_MIRROR: address("the address of the StateMirror contract").describe(
    "The StateMirror contract there.",
  ),
};
const addresses = z
  .string()
  .transform((list) => list.split(",").filter((one) => one !== ""))
  .pipe(z.array(url("http or https addresses, separated by commas")))
  .default([]);
const PEERS = {
  MINTMARK_PEERS: addresses.describe(
    "Members and engines' servers, separated by commas: sources of the data of validium batches, and of batches in blobs.",
  ),
  MINTMARK_BEACONS: addresses.describe(
    "Beacon nodes of the settlement chain, separated by commas, asked in this order for the blobs of rollup batches. Nodes drop blobs after about 18 days; only supernodes and semi-supernodes have them whole.",
  ),
  MINTMARK_BLOBS: text
    .optional()
    .describe(
      "Folder of blobs, asked first: a file of 131072 bytes each, named `0x<versioned hash>.blob`.",
    ),
};
export type SourceSettings = z.output<z.ZodObject<typeof PEERS>>;
const POLL = {
  MINTMARK_POLL_MS: z
    .string()
    .regex(/^[1-9]\d{0,8}$/, "Give a number of milliseconds.")
    .transform(Number)
    .default(12_000)
    .describe("Milliseconds between reads of a chain."),
};
const {
  MINTMARK_MIRRORS,
  MINTMARK_HOST,
  MINTMARK_HOSTS,
  MINTMARK_PORT,
  MINTMARK_LOG_LEVEL,
  MINTMARK_STORE,
} = SETTINGS;
const signer = z.object({
  ...CHAIN,
  ...PEERS,
  ...POLL,
  MINTMARK_HOST,
  MINTMARK_HOSTS,
  MINTMARK_METRICS_PORT: SETTINGS.MINTMARK_METRICS_PORT,
  MINTMARK_METRICS_HOST: SETTINGS.MINTMARK_METRICS_HOST,
  MINTMARK_LOG_LEVEL,
});
export type SignerSettings = z.output<typeof signer>;

export const memberSettings = z.object({
  MINTMARK_MEMBER_STORE: z
    .string("Give the folder of the member's store.")
    .min(1)
    .describe("Folder of the member's own store."),
  ...signer.shape,
  MINTMARK_MIRRORS,
  MINTMARK_PORT: port.default(3100).describe("Port to listen on; 0 for any."),
});

const amount = whole(/^\d{1,78}$/, "Give a whole number of base units as text.");

/** `7`, or `1-10000` with both ends. */
const ids = z
  .string()
  .regex(/^\d{1,78}(?:-\d{1,78})?$/, "Give an id, or two with a hyphen between.")
  .transform((text) => {
    const [first = "", last = first] = text.split("-");
    return { first: BigInt(first), last: BigInt(last) };
  });

const policy = z.strictObject({
  assets: z
    .array(
      z
        .strictObject({
          contractAddress: address("the token's contract"),
          ids: z.array(ids).optional(),
          cap: amount.optional(),
          capPerId: amount.optional(),
          perDay: amount.optional(),
        })
        .transform(({ contractAddress: token, ...bounds }) => ({ token, ...bounds })),
    )
    .min(1),
});

const jsonFile = json((path) => readFileSync(path, "utf8"), "Give a JSON file that can be read.");

/** An issuer's policy, from the JSON file of this name. */
const policyFile = jsonFile.pipe(policy).transform(({ assets }) => assets);

export const issuerSettings = z
  .object({
    MINTMARK_ISSUER_STORE: z
      .string("Give the folder of the issuer's store.")
      .min(1)
      .describe("Folder of the issuer's own store."),
    ...signer.shape,
    MINTMARK_PORT: port.default(3200).describe("Port to listen on; 0 for any."),
    MINTMARK_ISSUER: address("the address that the tokens name as their issuer")
      .optional()
      .describe(
        "The issuer that the tokens name, when it is a wallet contract; the key's own address when absent.",
      ),
    MINTMARK_POLICY: policyFile
      .optional()
      .describe(
        "JSON file of what may be minted; docs/guides/issuer.md has its form. Instead of a record.",
      ),
    MINTMARK_RECORD_SECRET: z
      .string()
      .regex(/^[\x21-\x7e]{32,255}$/, "Give 32 to 255 printable characters without spaces.")
      .optional()
      .describe(
        "What the application sends as `Authorization: Bearer` when it records a mint (POST /v1/mints).",
      ),
  })
  .superRefine(({ MINTMARK_POLICY: policy, MINTMARK_RECORD_SECRET: secret }, context) => {
    if ((policy === undefined) !== (secret === undefined)) return;
    const message =
      "Give this, or MINTMARK_POLICY instead of a record of mints: one of the two decides what is signed.";
    context.addIssue({ code: "custom", path: ["MINTMARK_RECORD_SECRET"], message });
  });

export const watchSettings = z.object({
  MINTMARK_STORE,
  ...CHAIN,
  ...PEERS,
  ...POLL,
  MINTMARK_MIRRORS,
});

export const relaySettings = z.object({
  ...CHAIN,
  ...MIRROR,
  MINTMARK_MEMBERS: SETTINGS.MINTMARK_MEMBERS.unwrap().describe(
    "The mirror's committee, each member as `<address>=<url>`.",
  ),
  MINTMARK_THRESHOLD: SETTINGS.MINTMARK_THRESHOLD.unwrap().describe("How many members must sign."),
  ...POLL,
});

export const rebuildSettings = z.object({ MINTMARK_STORE, ...CHAIN, ...PEERS });

export const exitKitSettings = z
  .object({ ...CHAIN, ...PEERS, ...z.object(MIRROR).partial().shape })
  .omit({ MINTMARK_CONFIRMATIONS: true });

export const sessionSettings = z
  .object(CHAIN)
  .pick({ MINTMARK_RPC_URL: true, MINTMARK_CONTRACT: true });

export const enterSettings = z.object({
  ...sessionSettings.shape,
  MINTMARK_CONFIRMATIONS: CHAIN.MINTMARK_CONFIRMATIONS,
});

export const exitSettings = z.object({
  MINTMARK_RPC_URL: url("an RPC of the kit's chain").describe("An RPC of the kit's chain."),
});

export const renewSettings = z.object({
  ...exitSettings.shape,
  MINTMARK_CONFIRMATIONS: CHAIN.MINTMARK_CONFIRMATIONS,
});

export const chainSettings = z.object({
  MINTMARK_CHAIN_PORT: port.default(8545).describe("Port of the local chain; 0 for any."),
});

const MINTMARK_SANDBOX = text.default(".mintmark/sandbox").describe("Folder of the sandbox.");
export const sandboxSettings = z.object({
  MINTMARK_PORT,
  ...chainSettings.shape,
  MINTMARK_SANDBOX,
  MINTMARK_ROLLUP_DATA: SETTINGS.MINTMARK_ROLLUP_DATA.describe(
    "Where vaults of `zk-rollup` go: `blobs`, `calldata`, or `auto`, which is `blobs` in the sandbox.",
  ),
});
export const demoSettings = z.object({ MINTMARK_SANDBOX });

const seconds = whole(/^\d{1,15}$/, "Give a number of seconds.");
const committee = z
  .string("Give the committee's addresses, separated by commas.")
  .transform((text) => text.split(",").map((part) => part.trim()))
  .pipe(z.array(address("addresses, separated by commas")).min(1).max(255));
const threshold = z
  .string("Give how many members must sign.")
  .regex(/^[1-9]\d{0,2}$/, "Give how many members must sign.")
  .transform(Number);
const integer = whole(/^\d{1,78}$/, "Give a whole number as text.");
export const tokenSetting = z.strictObject({
  standard: z.enum(["erc20", "erc721", "erc1155"]),
  name: text,
  symbol: text,
  cap: integer.optional(),
  quantum: integer.optional(),
  uri: z.string().optional(),
  royalty: z.strictObject({ receiver: address("an address"), fraction: integer }).optional(),
  mintingBlobScheme: z.enum(["mintmark", "imx"]).optional(),
  admin: address("an address").optional(),
  issuer: address("an address").optional(),
  lockMinter: z.boolean().optional(),
  transferable: z.boolean().optional(),
});
const token = json((text) => text, "Give JSON.").pipe(tokenSetting);

export type TokenSetting = z.output<typeof tokenSetting>;

const deployment = {
  MINTMARK_RPC_URL: url("the address of the chain's RPC"),
  MINTMARK_ADMIN: address("an address").optional(),
  MINTMARK_MULTISIG: address("an address").optional(),
  MINTMARK_GUARDIAN: address("an address").optional(),
  MINTMARK_OPERATOR: address("an address").optional(),
  MINTMARK_COMMITTEE: committee,
  MINTMARK_THRESHOLD: threshold,
  MINTMARK_CHANGE_DELAY: seconds.default(604_800n),
  MINTMARK_MATURITY: seconds.default(86_400n),
  MINTMARK_TRANSFERS: z.enum(["yes", "no"]).default("yes"),
  MINTMARK_ALLOW_NO_DELAY: z.enum(["yes", "no"]).default("no"),
  MINTMARK_DEPLOYMENTS: text.default(".mintmark/deployments"),
  MINTMARK_TOKEN: token.optional(),
  MINTMARK_MIRROR_RPC_URL: MIRROR.MINTMARK_MIRROR_RPC_URL.optional(),
  MINTMARK_MIRROR_ADMIN: address("an address").optional(),
  MINTMARK_MIRROR_COMMITTEE: committee.optional(),
  MINTMARK_MIRROR_THRESHOLD: threshold.optional(),
  MINTMARK_MIRROR_TOKEN: token.optional(),
};

export const deploySettings = z
  .object(described(deployment, ABOUT_DEPLOYMENT))
  .superRefine(({ MINTMARK_ADMIN: admin, MINTMARK_MULTISIG: multisig }, context) => {
    if (admin === undefined || multisig === undefined) return;
    const message =
      "Give this or MINTMARK_ADMIN, not both: the multisig administers through its own time lock.";
    context.addIssue({ code: "custom", path: ["MINTMARK_MULTISIG"], message });
  });

const folder = text.optional().describe("Folder of the deployment; default `mintmark-<network>`.");
export const upSettings = z.object({
  MINTMARK_NETWORK: z
    .string("Give the network: a name such as sepolia, or the URL of a node.")
    .min(1)
    .describe("A network by its name, such as sepolia or base, or the URL of a node."),
  MINTMARK_RPC_URL: url("the address of a node of the network")
    .optional()
    .describe("A node of the network; default a public one, which limits requests."),
  MINTMARK_FOLDER: folder,
  MINTMARK_ANSWERS: jsonFile
    .optional()
    .describe(
      "JSON file of the terms; docs/guides/network.md has its form. Later runs take new tokens from it.",
    ),
  MINTMARK_PROFILE: z
    .enum(["committee", "solo"], "Give committee or solo.")
    .optional()
    .describe("`solo`: one server without others; docs/guides/solo.md says what it gives up."),
  MINTMARK_SOURCIFY: url("the address of a Sourcify server")
    .default("https://sourcify.dev/server")
    .describe("The service that publishes the contracts' sources."),
  ...POLL,
});

export const doctorSettings = z.object({
  MINTMARK_FOLDER: folder.describe(
    "Folder of a deployment that `mintmark up` made, in place of the server's settings.",
  ),
  MINTMARK_BACKUP: text.optional().describe("Folder that `mintmark backup` writes."),
});

export const inspectSettings = z.object({
  MINTMARK_RPC_URL: CHAIN.MINTMARK_RPC_URL.describe("The RPC of the token's chain."),
  MINTMARK_CONTRACT: SETTINGS.MINTMARK_CONTRACT.optional().describe(
    "The settlement contract, to try a withdrawal.",
  ),
  MINTMARK_ADAPTER: text
    .optional()
    .describe("Folder for an adapter contract with its test, for a token without `mintFor`."),
});

export const ALL_SETTINGS: Readonly<Record<string, z.ZodType>> = Object.assign(
  {},
  ...[
    memberSettings,
    watchSettings,
    relaySettings,
    exitKitSettings,
    sandboxSettings,
    deploySettings,
    upSettings,
    doctorSettings,
    inspectSettings,
  ].map(({ shape }) => shape),
  SETTINGS,
);
