import type { FastifyReply, FastifyRequest } from "fastify";
import { expect, test } from "vitest";
import type { Principal } from "../../core/index.ts";
import { KeptAnswers } from "../../server/http/kept-answers.ts";

const reply = {
  statusCode: 201,
  type: () => reply,
  code: () => reply,
  header: () => reply,
  getHeader: () => undefined,
} as unknown as FastifyReply;

const store = { requireSameRequest: async () => {}, keepRequest: async () => {} };

/** Sends a request of a tenant; resolves with whether it ran, and was not repeated. */
async function sends(answers: KeptAnswers, applicationId: string, key: string, text = "") {
  let ran = false;
  const request = { url: "/", body: {} } as FastifyRequest;
  await answers.once(request, reply, { applicationId } as Principal, key, () => {
    ran = true;
    return text;
  });
  return ran;
}

test("the application that keeps the most loses its oldest answers, and no other one any", async () => {
  const answers = new KeptAnswers(store);
  const megabytes = "x".repeat(8 * 1024 * 1024);
  for (let i = 0; i < 100; i++) await sends(answers, `small ${i}`, "key");
  for (let i = 0; i < 9; i++) await sends(answers, "large", `${i}`, megabytes);
  for (let i = 0; i < 100; i++) expect(await sends(answers, `small ${i}`, "key")).toBe(false);
  expect(await sends(answers, "large", "8")).toBe(false);
  expect(await sends(answers, "large", "0")).toBe(true);
});

test("applications without an answer are not looked at again", async () => {
  const answers = new KeptAnswers(store);
  for (let i = 0; i < 100; i++) {
    const refused = answers.once(
      { url: "/", body: {} } as FastifyRequest,
      reply,
      { applicationId: `${i}` } as Principal,
      "key",
      () => Promise.reject(new Error("refused")),
    );
    await expect(refused).rejects.toThrow("refused");
  }
  expect(answers.applications).toBe(0);
  await sends(answers, "one", "key");
  expect(answers.applications).toBe(1);
});
