import { getBlobBaseFee, getBlock } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import { isBusy, isRefusal, type L1Connection } from "./connection.ts";

/**
 * How slowly the price of blob gas follows its use (`BLOB_BASE_FEE_UPDATE_FRACTION`): EIP-4844,
 * EIP-7691, and the forks by EIP-7892 that change it alone.
 */
const CANCUN = 3_338_477n;
const PRAGUE = 5_007_716n;
const BPO1 = 8_346_193n;
const BPO2 = 11_684_671n;

/** Timestamps of the forks by EIP-7892 on public chains, newest first. */
const FORKS: Readonly<Record<string, readonly (readonly [since: bigint, fraction: bigint])[]>> = {
  // Ethereum
  "1": [
    [1_767_747_671n, BPO2],
    [1_765_290_071n, BPO1],
  ],
  // Sepolia
  "11155111": [
    [1_761_607_008n, BPO2],
    [1_761_017_184n, BPO1],
  ],
  // Hoodi
  "560048": [
    [1_762_955_544n, BPO2],
    [1_762_365_720n, BPO1],
  ],
};

/** The fields of a block's header that set the price of blob gas. */
export interface BlobHeader {
  readonly timestamp: bigint;
  readonly excessBlobGas?: bigint | null;
  /** Headers have it since Prague. */
  readonly requestsHash?: unknown;
}

/**
 * Wei per unit of blob gas in a block, by its header and the rule of its fork; null before blobs.
 * Too much on a chain with a newer rule that is unknown here, where the block's own price is paid.
 */
export function blobFeeIn(chainId: bigint, header: BlobHeader): bigint | null {
  const { timestamp, excessBlobGas, requestsHash } = header;
  if (excessBlobGas == null) return null;
  const fork = FORKS[`${chainId}`]?.find(([since]) => timestamp >= since);
  return exponential(excessBlobGas, fork?.[1] ?? (requestsHash === undefined ? CANCUN : PRAGUE));
}

/** `fake_exponential` of EIP-4844: e to the power of a fraction, rounded down. */
function exponential(numerator: bigint, denominator: bigint): bigint {
  let sum = 0n;
  let term = denominator;
  for (let i = 1n; term > 0n; i++) {
    sum += term;
    term = (term * numerator) / (denominator * i);
  }
  return sum / denominator;
}

/** The price of blob gas, from the newest header where the node lacks `eth_blobBaseFee`. */
export async function blobBaseFee({ client, settlement }: L1Connection): Promise<bigint> {
  try {
    return await getBlobBaseFee(client);
  } catch (error) {
    if (!isRefusal(error) || isBusy(error)) throw error;
    const fee = blobFeeIn(settlement.chainId, (await getBlock(client)) as BlobHeader);
    if (fee !== null) return fee;
    throw new MintmarkError("l1_failed", "the chain's blocks have no blob gas", { cause: error });
  }
}
