import { type Address, bytesToHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { MAX_AMOUNT, MODES } from "../../core/model.ts";
import { batchLeaves, readBatchData, type VaultEntry } from "../../core/protocol/batch-data.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import { type NaiveWords, naiveData, naiveWords } from "../core/naive/naive-words.ts";
import { commitWords, entry, proofOf, provenArgs, sealedRoot } from "./fixture/batches.ts";
import { type Deployment, openChain } from "./fixture/deployment.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();

/** Records that L1 takes, since it reads no tag, though they are no vault's words. */
describe.each(MODES)("in a %s batch, a poisoned record pays nobody:", (mode) => {
  let d: Deployment;
  let owner: Address;
  beforeEach(async () => {
    d = await fresh();
    owner = d.actors.owner.account.address;
  });

  const u = (value: number | bigint, bytes: number) => value.toString(16).padStart(2 * bytes, "0");
  const part = (bytes: string) => bytes.padEnd(62, "0");
  const one =
    (assetIndex = "00") =>
    (tag: string, payload: string, rest: string[] = []) => ({
      head: tag + assetIndex + owner.slice(2) + payload.padStart(20, "0"),
      rest,
    });
  const coin = (amount = 5n) => entry(d.assets.coin, owner, "", amount);
  const card = (text: string) => entry(d.assets.card, owner, text);
  const item = (text: string, amount: bigint) => entry(d.assets.item, owner, text, amount);

  type Poison = readonly [what: string, words: () => NaiveWords, claim: () => VaultEntry];
  const long = 2n ** 90n;
  it.each<Poison>([
    ["a tag of no form", () => one()("70", u(5, 8)), () => coin()],
    ["form 15", () => one()("f0", u(5, 8)), () => coin()],
    ["a void slot with an owner and an amount", () => one()("00", u(5, 8)), () => coin()],
    ["an amount of 0", () => one()("10", u(0, 8)), () => coin(0n)],
    ["an amount above 2^63 - 1", () => one()("10", u(MAX_AMOUNT + 1n, 8)), () => coin(2n ** 63n)],
    ["an amount of 80 bits", () => one()("10", u(2n ** 64n + 5n, 10)), () => coin()],
    ["an amount with a continuation", () => one()("11", u(5, 8), [part("")]), () => coin()],
    [
      "ten continuations",
      () => one()("6a", u(2, 8), Array(10).fill(part("026162"))),
      () => item("ab", 2n),
    ],
    [
      "fifteen continuations",
      () => one()("6f", u(2, 8), Array(15).fill(part(""))),
      () => item("ab", 2n),
    ],
    [
      "a continuation too many",
      () => one()("62", u(2, 8), [part("026162"), part("")]),
      () => item("ab", 2n),
    ],
    ["no continuation", () => one()("60", u(2, 8)), () => item("ab", 2n)],
    [
      "padding that is not zero",
      () => one()("61", u(2, 8), [`${part("026162").slice(0, -2)}01`]),
      () => item("ab", 2n),
    ],
    ["a length past its bytes", () => one()("61", u(2, 8), [part("036162")]), () => item("ab", 2n)],
    [
      "a place of continuations, which only blobs have",
      () => one()("61", u(1, 2) + u(2, 8), [part("026162")]),
      () => item("ab", 2n),
    ],
    [
      "a place before a long id",
      () => one()("21", u(1, 2) + u(0, 8), [u(long, 31)]),
      () => card(String(long)),
    ],
    [
      "a short id in the form of long ones",
      () => one()("21", u(0, 10), [u(7, 31)]),
      () => card("7"),
    ],
    ["an id in the form of texts", () => one()("61", u(1, 8), [part("0137")]), () => card("7")],
    ["one unit in the form of many", () => one()("50", u(1, 5) + u(7, 5)), () => card("7")],
    ["another spelling of an id", () => one()("20", u(7, 10)), () => card("007")],
    ["raw bytes of a decimal", () => one()("40", u(7, 10)), () => card("7")],
    ["an index without an asset", () => one("01")("10", u(5, 8)), () => coin()],
    ["index 255", () => one("ff")("10", u(5, 8)), () => coin()],
  ])("%s", async (_, words, claim) => {
    // Beside a vault and its duplicate, so that neither is lost with it.
    const claimed = claim();
    const { chainId, assetType } = claimed;
    const honest = { ...claimed, ...(claimed.amount > MAX_AMOUNT && { amount: 5n }) };
    if (honest.amount === 0n) honest.amount = 5n;
    const good = naiveWords(honest, 0);
    const spelt = {
      assets: [{ chainId, assetType }],
      words: [good, words(), good],
      claims: [honest, claimed, honest],
    };
    const batch = await commitWords(mode, d, spelt);
    const data = naiveData([u(chainId, 8) + assetType.slice(2)], spelt.words, false);
    const leaves = batchLeaves(readBatchData(Buffer.from(data.slice(2), "hex")), mode, 0);
    const content = bytesToHex(new BatchTree(leaves).root);
    expect(batch.header).toMatchObject({
      batchRoot: sealedRoot(mode, spelt.assets, content),
      vaultCount: 3,
    });
    await d.mature();
    const quantity = claimed.amount === 0n ? 1n : claimed.amount;
    const stolen = d.state.write.withdraw(
      withdrawArgs(request(batch, 1, { quantity })),
      d.by("owner"),
    );
    await d.refuses(stolen, "ProofInvalid", [request(batch, 1).vault.vaultId]);
    if (claimed.assetType === d.assets.card.assetType) {
      const pair = [...provenArgs(proofOf(batch, 0)), ...provenArgs(proofOf(batch, 2))] as const;
      await d.state.write.voidDuplicate(pair);
      await d.refuses(
        d.state.write.withdraw(withdrawArgs(request(batch, 2)), d.by("owner")),
        "VaultExhausted",
      );
    }
    await d.state.write.withdraw(withdrawArgs(request(batch, 0)), d.by("owner"));
  });

  it("takes a vault's words without any of that", async () => {
    const [slot, words] = [item("ab", 2n), one()("61", u(2, 8), [part("026162")])];
    expect(words).toEqual(naiveWords(slot, 0));
    const batch = await commitWords(mode, d, { assets: [slot], words: [words], claims: [slot] });
    await d.state.write.withdraw(withdrawArgs(request(batch, 0)), d.by("owner"));
  });
});
