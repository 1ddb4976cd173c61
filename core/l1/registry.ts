import type { ContractFunctionReturnType } from "viem";
import { zeroAddress } from "viem";
import { multicall } from "viem/actions";
import { type Address, STANDARDS } from "../model.ts";
import type { AssetId, IssuerReader, L1Reader, L1Registration } from "../ports.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import { STANDARD_VALUE } from "./arguments.ts";
import { askInBulk, type L1Connection, orIfSilent, saysNothing, viewsOf } from "./connection.ts";
import { schemeOf } from "./tokens.ts";

/** Registrations per call: an answer has at most 24,576 bytes (EIP-170), 288 for each. */
const ASSETS_PER_CALL = 84;

type ViewAnswer<F extends "asset" | "issuerOf"> = ContractFunctionReturnType<typeof abi, "view", F>;

/** Reads of the contract's registry of assets. */
export type RegistryReads = Pick<
  L1Reader,
  "registration" | "registrations" | "isTransferable" | "isMadeOnly"
> &
  Pick<IssuerReader, "issuers">;

export function registryReads(connection: L1Connection): RegistryReads {
  const view = viewsOf(connection, abi);
  const registrations: L1Reader["registrations"] = async (assets, at) => {
    const answers = await ofAssets(connection, "asset", "reading the registrations", assets, at);
    return answers.map((answer) => answer && registrationOf(answer));
  };

  /** A contract without transfers or makings does not know their function. */
  const says = (
    functionName: "isTransferable" | "isMadeOnly",
    words: string,
    { chainId, assetType }: AssetId,
    at?: bigint,
  ) => {
    const args = [chainId, BigInt(assetType)] as const;
    const asked = view(`asking whether ${assetType} is ${words}`, functionName, args, at);
    return orIfSilent(asked, false);
  };

  return {
    registrations,

    async registration(chainId, assetType, at) {
      return (await registrations([{ chainId, assetType }], at))[0] ?? null;
    },

    isTransferable: (asset, at) => says("isTransferable", "transferable", asset, at),
    isMadeOnly: (asset, at) => says("isMadeOnly", "made only", asset, at),

    async issuers(assets) {
      const answers = await ofAssets(connection, "issuerOf", "reading the issuers", assets);
      return answers.map((answer) => {
        const [issuer, epoch, suspended] = answer ?? [zeroAddress, 0n, false];
        return issuer === zeroAddress
          ? null
          : { issuer: issuer.toLowerCase() as Address, epoch, suspended };
      });
    },
  };
}

function registrationOf(of: ViewAnswer<"asset">): L1Registration | null {
  const [value, token, quantum, scheme, since] = of;
  const standard = STANDARDS.find((name) => STANDARD_VALUE[name] === value);
  if (standard === undefined) return null;
  return {
    standard,
    token: token.toLowerCase() as Address,
    quantum,
    mintingBlobScheme: schemeOf(scheme) ?? "imx",
    since,
  };
}

/**
 * A view of the registry for many assets, many in one call; null at a past block that lacks the
 * contract.
 */
function ofAssets<F extends "asset" | "issuerOf">(
  { client, settlement }: L1Connection,
  view: F,
  doing: string,
  assets: readonly AssetId[],
  at?: bigint,
): Promise<readonly (ViewAnswer<F> | null)[]> {
  const read = { abi, address: settlement.contract, functionName: view };
  const ask = async (some: readonly AssetId[]): Promise<readonly (ViewAnswer<F> | null)[]> => {
    const contracts = some.map(({ chainId, assetType }) => ({
      ...read,
      args: [chainId, BigInt(assetType)],
    }));
    const many = {
      contracts,
      deployless: true,
      batchSize: 0,
      allowFailure: false,
      blockNumber: at,
    };
    try {
      return (await multicall(client, many as never)) as never;
    } catch (error) {
      if (at !== undefined && saysNothing(error)) return some.map(() => null);
      throw error;
    }
  };
  return askInBulk(`${doing} of ${assets.length} assets`, assets, ASSETS_PER_CALL, ask);
}
