import Fastify from "fastify";
import { expect, test } from "vitest";
import { requestId } from "../../server/http/fastify-app.ts";
import { type LogOptions, logging, swept } from "../../server/http/log.ts";

/**
 * The lines of a server in which the handler has pino tell of the request, as the log does by
 * itself when it is over.
 */
async function linesOf(level: LogOptions["level"], url: string): Promise<string[]> {
  const lines: string[] = [];
  const stream = { write: (line: string) => void lines.push(line) };
  const app = Fastify({
    ...logging({ level, stream, secrets: ["opensesame"] }),
    genReqId: requestId,
  });
  app.get("/*", async (request, reply) => {
    request.log.info(
      { req: request, res: reply.code(207), responseTime: reply.elapsedTime },
      "request completed",
    );
    return "";
  });
  await app.inject({ url, headers: { "x-request-id": "abc-1" } });
  await app.close();
  return lines;
}

const untimed = (line = "") => line.replace(/"time":\d+/, "").replace(/"responseTime":[\d.]+/, "");

test.each(["/plain", "/a%20b?key=mm_test_1", '/quoted"\\', "/mm_test_aaaa", "/opensesame", "/é"])(
  "the line of a request for %s is the one that pino writes",
  async (url) => {
    const [byPino, own, ...others] = await linesOf("info", url);
    expect(others).toEqual([]);
    expect(untimed(own)).toBe(untimed(byPino));
    expect(JSON.parse(own ?? "")).toMatchObject({
      reqId: "abc-1",
      res: { statusCode: 207 },
      msg: "request completed",
    });
    expect(own).toMatch(/"time":\d{13},.*"responseTime":[\d.]+,/);
    expect(own).not.toMatch(/key=|mm_test_a|sesame/);
  },
);

test("successful requests are not logged above their level", async () => {
  expect(await linesOf("warn", "/plain")).toEqual([]);
});

test.each([
  ["eyJa.b.c", "[redacted]"],
  [
    '{"path":"/x/eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.AA-_","more":1}',
    '{"path":"/x/[redacted]","more":1}',
  ],
  ["\\neyJa.b.c eyJd.e.f", "\\n[redacted] [redacted]"],
  ["/.eyJa.b.c", "/.[redacted]"],
  ["x.eyJeyJa.b.", "x.[redacted]"],
  ["eyJa.b and eyJ", "eyJa.b and eyJ"],
  ["mm_live_ab_cd whsec_ab+/= opensesame", "[redacted] [redacted] [redacted]"],
])("%s is logged as %s", (text, logged) => {
  expect(swept(text, ["opensesame"])).toBe(logged);
});
