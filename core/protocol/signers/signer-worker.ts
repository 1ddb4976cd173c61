import { parentPort } from "node:worker_threads";
import { recover } from "tiny-secp256k1";
import { keccak256 } from "../hash.ts";
import { HASH_BYTES } from "../hex.ts";
import { ANSWER_BYTES, QUESTION_BYTES } from "./signer-bytes.ts";

/** Half the order of the curve: L1 takes only a signature whose s is not above it. */
const MAX_S = Buffer.from("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0", "hex");

/** The account behind a signature `r ‖ vs` of 64 bytes (EIP-2098), as L1's `ecrecover` finds it; null when it finds none. */
function signerOf(digest: Uint8Array, signature: Uint8Array): Uint8Array | null {
  const parts = signature.slice();
  const parity = (parts[32] as number) >= 0x80 ? 1 : 0;
  parts[32] = (parts[32] as number) & 0x7f;
  if (Buffer.compare(parts.subarray(32), MAX_S) > 0) return null;
  try {
    const key = recover(digest, parts, parity, false);
    return key === null ? null : keccak256(key.subarray(1)).subarray(12);
  } catch {
    // r or s is zero or not below the order.
    return null;
  }
}

/** The thread of core/protocol/signers/signer-thread.ts. */
parentPort?.on("message", (questions: Uint8Array) => {
  const count = questions.length / QUESTION_BYTES;
  const answers = new Uint8Array(count * ANSWER_BYTES);
  for (let i = 0; i < count; i++) {
    const question = questions.subarray(i * QUESTION_BYTES, (i + 1) * QUESTION_BYTES);
    const signer = signerOf(question.subarray(0, HASH_BYTES), question.subarray(HASH_BYTES));
    if (signer === null) continue;
    answers[i * ANSWER_BYTES] = 1;
    answers.set(signer, i * ANSWER_BYTES + 1);
  }
  parentPort?.postMessage(answers, [answers.buffer]);
});
