import { HttpRequestError } from "viem";
import { expect, test } from "vitest";
import { MintmarkError } from "../../core/index.ts";
import { reach } from "../../server/process/reach.ts";

const failing = (errors: readonly unknown[]) => {
  const left = [...errors];
  return async () => {
    if (left.length > 0) throw left.shift();
  };
};

test("a server that begins tries again while L1 or the cluster's journal is away", async () => {
  const l1 = new HttpRequestError({ url: "http://127.0.0.1:1" });
  const journal = new MintmarkError("journal_unavailable");
  const said: string[] = [];
  const { signal } = new AbortController();
  await reach(failing([journal, l1]), signal, (_, message) => said.push(message));
  expect(said).toEqual([
    expect.stringContaining("journal"),
    expect.stringContaining("MINTMARK_RPC_URL"),
  ]);
});

test("a server that begins does not try again when waiting cannot help", async () => {
  const wrong = new MintmarkError("store_mismatch");
  const { signal } = new AbortController();
  await expect(reach(failing([wrong]), signal, () => {})).rejects.toBe(wrong);
});
