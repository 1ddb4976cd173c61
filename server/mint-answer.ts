import type { MintResult, MintTransaction, Vault } from "../core/index.ts";
import { decimal, receiptToWire, time } from "./wire.ts";

/** What a vault and a transaction mostly take; the room grows for those that take more. */
const VAULT_BYTES = 640;
const TRANSACTION_BYTES = 160;

/**
 * The bytes of `JSON.stringify(await mintToWire(result))`, in about half the time: the answer is the dearest part of a large mint.
 * Every text in it is ASCII that needs no escape: UUIDs, hex, decimals, times and names of ours.
 */
export async function mintAnswer(result: MintResult): Promise<Buffer> {
  const receipt = await result.receipt();
  const { mintId, vaults, transactions } = result;
  const text = new AsciiText(256 + vaults.length * VAULT_BYTES + transactions.length * TRANSACTION_BYTES);
  text.add(`{"mintId":"${mintId}","vaults":[`);
  addVaults(text, vaults);
  text.add('],"transactions":[');
  let comma = "";
  for (const transaction of transactions) {
    text.add(comma + transactionText(transaction));
    comma = ",";
  }
  text.add(`],"receipt":${receipt === null ? null : JSON.stringify(receiptToWire(receipt))}}`);
  return text.bytes();
}

/** Neighbours mostly share their holder, their asset, and their batch and times: those parts are spelt once for all of them. */
function addVaults(text: AsciiText, vaults: readonly Vault[]): void {
  let last: Vault | undefined;
  let holder = "";
  let asset = "";
  let state = "";
  for (const vault of vaults) {
    if (vault.userId !== last?.userId || vault.ownerAddress !== last.ownerAddress) {
      holder = `"userId":"${vault.userId}","ownerAddress":"${vault.ownerAddress}"`;
    }
    if (vault.assetId !== last?.assetId || vault.assetType !== last.assetType) {
      asset = `"assetId":"${vault.assetId}","assetType":"${vault.assetType}"`;
    }
    if (last === undefined || !sameState(vault, last)) state = stateText(vault);
    const { mintingBlob, tokenId, dataAvailabilityMode } = vault;
    const amount = decimal(vault.amount);
    const available = vault.availableBalance === vault.amount ? amount : decimal(vault.availableBalance);
    text.add(
      `${last ? "," : ""}{"vaultId":"${decimal(vault.vaultId)}",${holder},${asset},"mintingBlob":"${mintingBlob}",` +
        `"tokenId":${tokenId === null ? null : `"${decimal(tokenId)}"`},"dataAvailabilityMode":"${dataAvailabilityMode}",` +
        `"amount":"${amount}","availableBalance":"${available}","withdrawnBalance":"${decimal(vault.withdrawnBalance)}",${state}}`,
    );
    last = vault;
  }
}

function stateText({ batchId, status, createdAt, updatedAt }: Vault): string {
  return `"batchId":"${batchId}","status":"${status}","createdAt":"${time(createdAt)}","updatedAt":"${time(updatedAt)}"`;
}

function sameState(a: Vault, b: Vault): boolean {
  return a.batchId === b.batchId && a.status === b.status && a.createdAt === b.createdAt && a.updatedAt === b.updatedAt;
}

function transactionText({ transactionId, userIndex, mintIndex, vaultId, status }: MintTransaction): string {
  return (
    `{"transactionId":"${transactionId}","userIndex":${userIndex},"mintIndex":${mintIndex},` +
    `"vaultId":"${decimal(vaultId)}","status":"${status}"}`
  );
}

/** Text as bytes, each piece written as soon as it is made, so that no string of the whole is ever put together. */
class AsciiText {
  #room: Buffer;
  #length = 0;

  constructor(expected: number) {
    this.#room = Buffer.allocUnsafe(expected);
  }

  add(text: string): void {
    if (this.#length + text.length > this.#room.length) {
      const wider = Buffer.allocUnsafe(2 * this.#room.length + text.length);
      this.#room.copy(wider, 0, 0, this.#length);
      this.#room = wider;
    }
    this.#length += this.#room.write(text, this.#length, "latin1");
  }

  bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }
}
