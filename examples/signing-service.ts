/**
 * A signing service for a KMS: it speaks Web3Signer's `eth1/sign`, which `MINTMARK_OPERATOR_SIGNER`
 * and the other signer settings use. The key of this example lies in a PEM file. With AWS KMS,
 * `signDigest` is the command `Sign` with `MessageType: "DIGEST"` and `SigningAlgorithm:
 * "ECDSA_SHA_256"`, whose answer has the same form.
 *
 *   openssl ecparam -name secp256k1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out key.pem
 *   npm run example -- signing-service key.pem 9000 <chain id> 0x<StateCommitment>
 */
import { createPrivateKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { secp256k1 } from "@noble/curves/secp256k1";
import {
  bytesToHex,
  domainSeparator,
  type Hex,
  hexToBytes,
  isHex,
  keccak256,
  parseTransaction,
} from "viem";
import { publicKeyToAddress } from "viem/accounts";

const [pem = "key.pem", port = "9000", chainId = "31337", contract = "0x"] = process.argv.slice(2);
const { d = "" } = createPrivateKey(readFileSync(pem)).export({ format: "jwk" });
const key = Buffer.from(d, "base64url");
const address = publicKeyToAddress(bytesToHex(secp256k1.getPublicKey(key, false)));

/** A KMS answers with a DER signature over a digest. The key stays inside. */
function signDigest(digest: Uint8Array): Uint8Array {
  return secp256k1.sign(digest, key).toDERRawBytes();
}

/** The first bytes of all typed data (EIP-712) that this contract and its members understand. */
const domain = {
  name: "Mintmark",
  version: "1",
  chainId: Number(chainId),
  verifyingContract: contract as Hex,
};
const typedData = `0x1901${domainSeparator({ domain }).slice(2)}`;

/** Why a message is not signed; null when it is. */
function refusal(message: Hex): string | null {
  if (message.startsWith("0x1901")) {
    return message.startsWith(typedData) ? null : "this key signs typed data of one contract only";
  }
  if (!/^0x0[23]/.test(message)) return "this key signs transactions of the types 2 and 3 only";
  const transaction = parseTransaction(message as `0x02${string}`);
  if (transaction.chainId !== domain.chainId)
    return `this key signs no transaction on chain ${transaction.chainId}`;
  if ((transaction.value ?? 0n) !== 0n) return "this key sends no ether";
  // The operator uses up a nonce by a transaction to itself.
  return [contract, address].some((each) => each.toLowerCase() === transaction.to?.toLowerCase())
    ? null
    : `this key signs no transaction to ${transaction.to}`;
}

/** Most characters of a request: six blobs, in hexadecimal, with their proofs. */
const MAX_REQUEST = 2_000_000;

const server = createServer(async (request, response) => {
  const answer = (status: number, text: string) =>
    response.writeHead(status, { "content-type": "text/plain" }).end(text);
  try {
    if (request.url !== `/api/v1/eth1/sign/${address}`)
      return answer(404, `this service has the key of ${address}`);
    // A page in a browser on this machine could ask too, but not with this type.
    if (request.headers["content-type"] !== "application/json")
      return answer(415, "send application/json");
    let body = "";
    for await (const chunk of request) {
      body += chunk;
      if (body.length > MAX_REQUEST) return answer(413, "the request is too long");
    }
    const { data } = JSON.parse(body) as { data: unknown };
    if (!isHex(data)) return answer(400, "data is no hexadecimal text");
    const reason = refusal(data);
    if (reason !== null) return answer(403, reason);
    const signature = secp256k1.Signature.fromDER(signDigest(hexToBytes(keccak256(data))));
    answer(200, `0x${signature.toCompactHex()}`);
  } catch (error) {
    answer(400, error instanceof Error ? error.message : "the request cannot be read");
  }
});
// Everybody who reaches the service can sign, so it listens on this machine only.
server.listen(Number(port), "127.0.0.1", () => {
  const { port: at } = server.address() as { port: number };
  console.log(`${address}=http://127.0.0.1:${at}/api/v1/eth1/sign/${address}`);
});
