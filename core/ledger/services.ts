import type { Environment, Limits } from "../model.ts";
import type { Clock, Settlement } from "../ports.ts";
import type { ReceiptSigner } from "../protocol/receipt.ts";
import { SignerThread } from "../protocol/signers/signer-thread.ts";
import { SealingThread } from "../sealing/sealing-thread.ts";
import type { EventHub } from "./event-hub.ts";
import type { EngineOptions } from "./options.ts";

/** The engine's options, and its threads. */
export class Services {
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly monotonic: Clock;
  readonly verifySignature: EngineOptions["verifySignature"];
  readonly receiptSigner: ReceiptSigner | undefined;
  readonly emit: EventHub["emit"];
  readonly sealingThread = new SealingThread();
  readonly signers = new SignerThread();

  constructor(options: EngineOptions, limits: Limits, emit: EventHub["emit"]) {
    this.settlement = options.settlement;
    this.environment = options.environment;
    this.limits = limits;
    this.clock = options.clock ?? Date.now;
    // A caller's clock counts as monotonic too, unless the caller gives another.
    this.monotonic = options.monotonic ?? options.clock ?? (() => performance.now());
    this.verifySignature = options.verifySignature;
    this.receiptSigner = options.receiptSigner;
    this.emit = emit;
  }
}
