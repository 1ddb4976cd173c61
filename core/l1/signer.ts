import * as TypedData from "ox/TypedData";
import type { LocalAccount } from "viem";
import * as viem from "viem";
import { toAccount } from "viem/accounts";
import { MintmarkError, messageOf } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import { visible } from "../protocol/text.ts";

/**
 * Signs for one account without giving its key away: a KMS, a hardware module, a signing service.
 * It gets the whole message and not only its hash, so it can tell transactions (`0x02…`, `0x03…`)
 * from typed data (`0x1901…`) and refuse.
 */
export interface Signer {
  readonly address: Address;
  /**
   * The ECDSA signature (secp256k1) over the keccak256 hash of a message: 64 bytes `r ‖ s`, or 65
   * with any last byte. `s` may be high.
   */
  sign(message: Hex): Promise<Hex>;
}

/** Half of the curve's order. L1 takes no signature with a higher `s` (EIP-2). */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * An account for `connectL1`, members and issuers that a {@link Signer} signs for. Each signature
 * is checked before its use. Signing rejects with `signer_failed`.
 *
 * @example
 * const account = signerAccount({ address, sign: (message) => kms.sign(message) });
 * const l1 = await connectL1({ rpc: "http://127.0.0.1:8545", contract, account });
 */
export function signerAccount(signer: Signer): LocalAccount {
  const sign = (message: Hex) => signed(signer, message);
  return toAccount({
    address: signer.address,
    signMessage: async ({ message }) =>
      viem.serializeSignature(await sign(viem.toPrefixedMessage(message))),
    async signTransaction(transaction, options) {
      const serialize = (options?.serializer ??
        viem.serializeTransaction) as typeof viem.serializeTransaction;
      // Blobs travel beside the transaction and are not signed.
      const unsigned = (
        transaction.type === "eip4844" ? { ...transaction, sidecars: false } : transaction
      ) as viem.TransactionSerializable;
      return serialize(
        transaction as viem.TransactionSerializable,
        await sign(await serialize(unsigned)),
      );
    },
    signTypedData: async (typedData) =>
      viem.serializeSignature(await sign(TypedData.encode(typedData as never))),
  });
}

/** Asks the signer, and finds the parity with which the signature is the account's. */
async function signed(signer: Signer, message: Hex) {
  const { address } = signer;
  let signature: Hex;
  try {
    signature = await signer.sign(message);
  } catch (error) {
    if (error instanceof MintmarkError) throw error;
    throw failed(address, messageOf(error), error);
  }
  const [, first, second] =
    /^0x([0-9a-f]{64})([0-9a-f]{64})(?:[0-9a-f]{2})?$/i.exec(signature) ?? [];
  if (first === undefined || second === undefined)
    throw failed(address, "its answer is no signature of 64 or 65 bytes");
  const value = BigInt(`0x${second}`);
  const r: Hex = `0x${first}`;
  const s = viem.numberToHex(value > ORDER / 2n ? ORDER - value : value, { size: 32 });
  const hash = viem.keccak256(message);
  for (const yParity of [0, 1] as const) {
    const by = await viem.recoverAddress({ hash, signature: { r, s, yParity } }).catch(() => "0x");
    if (by.toLowerCase() === address.toLowerCase()) return { r, s, yParity };
  }
  throw failed(
    address,
    "its signature is of another key; check that address and key belong together",
  );
}

function failed(address: Address, reason: string, cause?: unknown): MintmarkError {
  return new MintmarkError("signer_failed", `The signer of ${address} did not sign: ${reason}.`, {
    cause,
  });
}

/** Longest answer of a signing service, in characters. */
const MAX_ANSWER = 1_024;

/** The first characters of an answer, on one line. Reads no more than it needs. */
async function beginning({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk.subarray(0, MAX_ANSWER), { stream: true });
    if (text.length >= MAX_ANSWER) break;
  }
  return visible(text.slice(0, MAX_ANSWER)).trim();
}

/**
 * A signer behind HTTP, as Web3Signer's `POST /api/v1/eth1/sign/{identifier}`: it gets `{"data":
 * "0x…"}` and answers the signature over the data's keccak256 hash. Whoever reaches the service can
 * sign, so keep it private.
 *
 * @param url - with the identifier of the key
 * @example
 * const signer = httpSigner("0x…", "http://127.0.0.1:9000/api/v1/eth1/sign/0x…");
 */
export function httpSigner(address: Address, url: string, timeoutMs = 10_000): Signer {
  return {
    address,
    async sign(data) {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ data }),
        redirect: "error",
        signal: AbortSignal.timeout(timeoutMs),
      }).catch((error: unknown) => {
        const isLate = error instanceof Error && error.name === "TimeoutError";
        const what = isLate
          ? `did not answer within ${timeoutMs / 1000} seconds`
          : "cannot be reached";
        throw failed(
          address,
          `the signing service at ${new URL(url).origin} ${what}; start it, or mend the setting`,
        );
      });
      const text = await beginning(response);
      if (response.ok) return text.replaceAll('"', "") as Hex;
      throw failed(
        address,
        `the signing service answered ${response.status}: ${text.slice(0, 200) || "no reason"}`,
      );
    },
  };
}
