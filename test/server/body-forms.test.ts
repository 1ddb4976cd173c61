import { afterAll, describe, expect, test } from "vitest";
import { createWorld, refusal } from "./fixture.ts";

const world = await createWorld();
afterAll(() => world[Symbol.asyncDispose]());

describe("a body", () => {
  test("of the sandbox's mint is an example of the mint alone", async () => {
    await using sandbox = await createWorld({ mintExample: { users: [] } });
    const { paths } = (await sandbox.send("GET", "/openapi.json", { key: null })).body;
    const exampleOf = (path: string, method: string) =>
      paths[path][method].requestBody.content["application/json"].example;
    expect(exampleOf("/api/v1/mint", "post")).toEqual({ users: [] });
    const asset = "/api/v1/assets/{assetId}";
    expect(exampleOf(`${asset}/collection`, "put")).toHaveProperty("placeholder");
    expect(exampleOf(`${asset}/tokens/{tokenId}/metadata`, "put")).toHaveProperty("name");
  });

  test("is no query: two names of one parameter are refused", async () => {
    for (const query of ["page_size=1&pageSize=2", "pageSize=1&page_size=2", "limit=1&page_size=2"])
      expect(refusal(await world.send("GET", `/api/v1/transactions?${query}`)).code).toBe(
        "validation_failed",
      );
  });

  test("of metadata may say nothing in a field, and name content by Arweave and IPFS", async () => {
    const { assetId } = await world.engine.assets.add({
      contractAddress: `0x${"ad".repeat(20)}`,
      symbol: "T",
      name: "Own",
      standard: "erc721",
      applicationId: world.applicationId,
    });
    const url = `/api/v1/assets/${assetId}/tokens/1/metadata`;
    const image = `ar://${"a".repeat(43)}/1.png`;
    const empty = { description: null, animation_url: null, attributes: [], external_url: "" };
    const set = await world.send("PUT", url, { body: { name: "a", image, ...empty } });
    expect(set.body.metadata).toEqual({ name: "a", image });
    const cid = "b".repeat(59);
    for (const image of [`ipfs://ipfs/${cid}/1.png`, `ipfs://${cid}?filename=1.png`]) {
      const named = await world.send("PUT", url, { body: { name: "a", image } });
      expect(named.body.metadata).toEqual({ name: "a", image });
    }
    const placeholder = { name: "Soon", ...empty };
    const hidden = await world.send("PUT", `/api/v1/assets/${assetId}/collection`, {
      body: { placeholder },
    });
    expect(hidden.body.placeholder).toEqual({ name: "Soon" });
    const wrong = await world.send("PUT", url, { body: { name: "a", image: "ar://short" } });
    expect(refusal(wrong).code).toBe("validation_failed");
  });
});
