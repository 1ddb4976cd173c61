import { hash, layout, varint } from "../store/layout.ts";

/** Under an application's idempotency key: SHA-256 of the request, and the journal sequence of the mint that answers it. */
export const idempotencyRecord = layout({ digest: hash, sequence: varint });
