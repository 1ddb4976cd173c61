import type { Command } from "commander";
import { group, type Options, operating } from "../cli/command.ts";
import { secret, setting } from "../cli/secret.ts";

const EXAMPLE_ID = "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a21";
const EXAMPLE_APPLICATION = "01a1fd1b-bf5c-743a-abf0-3c3fec348cab";

/** An asset is minted once it is known, whitelisted, registered on L1 and enabled for the application. */
export function addAssets(program: Command): void {
  const assets = group(program, "assets", "token contracts: add, register on L1, whitelist, enable for an application");
  withFacts(
    operating(
      assets,
      "add <contract>",
      "make a token contract known",
      ["assets add 0xbcf26943c0197d2ee0e5d05c716be60cc2761508 --standard erc721 --name Swords --symbol SWRD"],
      "assets.add",
      (options, [contractAddress]) => ({
        ...factsOf(options),
        contractAddress,
        assetId: options.id,
        applicationId: options.application,
      }),
    )
      .requiredOption("--standard <standard>", "erc20, erc721 or erc1155")
      .requiredOption("--name <name>", "the token's name")
      .requiredOption("--symbol <symbol>", "the token's symbol")
      .option("--id <uuid>", "its id; default a fresh one")
      .option("--application <uuid>", "whose token it is: that application alone can enable it; default any can"),
  );
  withFacts(
    operating(
      assets,
      "change <asset>",
      "mend an asset: its mode and its blobs at any time, all else while nothing was minted of it",
      [`assets change ${EXAMPLE_ID} --mode zk-rollup`, `assets change ${EXAMPLE_ID} --standard erc1155 --scheme imx`],
      "assets.change",
      (options, [assetId]) => ({ ...factsOf(options), contractAddress: options.contract, assetId }),
    )
      .option("--standard <standard>", "erc20, erc721 or erc1155")
      .option("--contract <address>", "the token's contract")
      .option("--name <name>", "the token's name")
      .option("--symbol <symbol>", "the token's symbol"),
  );
  operating(
    assets,
    "remove <asset>",
    "take away an asset of which nothing was minted",
    [`assets remove ${EXAMPLE_ID}`],
    "assets.remove",
    (_, [assetId]) => ({ assetId }),
  );
  operating(
    assets,
    "list",
    "list every known asset; all its fields with --json",
    ["assets list", `assets list --application ${EXAMPLE_APPLICATION} --json`],
    "assets.list",
    ({ application }) => ({ applicationId: application }),
    [
      "assetId",
      "standard",
      "symbol",
      "contractAddress",
      "chainId",
      "whitelisted",
      "registered",
      "quantum",
      "decimals",
      "minted",
      "supplyCap",
    ],
  ).option("--application <uuid>", "as this application sees them: what is enabled, and what can be minted now");
  operating(
    assets,
    "register <asset>",
    "note that L1's registry has the token; with a key, register it there first",
    [
      `assets register ${EXAMPLE_ID} --rpc https://rpc.example`,
      `assets register ${EXAMPLE_ID} --key-stdin < registrar.key`,
    ],
    "assets.register",
    async ({ rpc, keyStdin }, [assetId]) => ({
      assetId,
      rpc: setting(rpc, "MINTMARK_RPC_URL", "the chain's RPC: --rpc"),
      registrarKey: await secret("MINTMARK_REGISTRAR_KEY", keyStdin === true),
    }),
  )
    .option("--rpc <url>", "the chain's RPC (MINTMARK_RPC_URL)")
    .option("--key-stdin", "read the paying account's private key from standard input (else MINTMARK_REGISTRAR_KEY)");
  operating(
    assets,
    "whitelist <asset>",
    "let applications enable and mint the asset",
    [`assets whitelist ${EXAMPLE_ID}`, `assets whitelist ${EXAMPLE_ID} --remove`],
    "assets.whitelist",
    ({ remove }, [assetId]) => ({ assetId, whitelisted: remove !== true }),
  ).option("--remove", "take it off the list again");
  for (const name of ["enable", "disable"] as const) {
    operating(
      assets,
      `${name} <asset>`,
      `${name} the asset for an application`,
      [`assets ${name} ${EXAMPLE_ID} --application ${EXAMPLE_APPLICATION}`],
      `assets.${name}`,
      ({ application }, [assetId]) => ({ applicationId: application, assetId }),
    ).requiredOption("--application <uuid>", "the application's id");
  }
}

/** The options of an asset that can be given when it is added and when it is changed. */
function withFacts(command: Command): Command {
  return command
    .option("--chain <id>", "the token's chain; default the settlement's")
    .option("--quantum <units>", "ERC-20: base units of one unit here; default 1")
    .option("--decimals <number>", "digits behind the point of the token's decimal amounts; default 0")
    .option("--scheme <scheme>", "how blobs name token ids: mintmark or imx; default mintmark")
    .option("--raw-blobs <flag>", "true to take minting blobs of any bytes; default false, text only")
    .option("--mode <mode>", "of mints that name none: validium or zk-rollup; default none, the application's")
    .option("--first-id <id>", "ERC-721: the engine numbers the tokens from this id on; default none, mints name ids")
    .option("--cap <units>", "most units that may ever be minted; default none, no bound");
}

/** What {@link withFacts} was given; `none` takes back what a change would otherwise keep. */
function factsOf(options: Options) {
  const { standard, name, symbol, quantum, chain, cap, decimals, scheme, rawBlobs, mode, firstId } = options;
  const orNone = (value: Options[string]) => (value === "none" ? null : value);
  return {
    standard,
    name,
    symbol,
    quantum,
    chainId: chain,
    supplyCap: orNone(cap),
    decimals: decimals === undefined ? undefined : Number(decimals),
    blobScheme: scheme,
    rawBlobs: rawBlobs === "true" || (rawBlobs === "false" ? false : rawBlobs),
    dataAvailabilityMode: orNone(mode),
    firstTokenId: orNone(firstId),
  };
}
