import autocannon from "autocannon";

export interface Target {
  readonly port: number;
  readonly apiKey: string;
}

/**
 * Sends each body once, from so many connections at once with autocannon, each the next one when its last was answered.
 *
 * @returns requests a second, from the first request to the last answer
 * @throws Error when an answer is not 200: a rate of refusals says nothing
 */
export function saturate({ port, apiKey }: Target, bodies: readonly Buffer[], connections: number): Promise<number> {
  const options: autocannon.Options = {
    url: `http://127.0.0.1:${port}`,
    amount: bodies.length,
    connections,
    timeout: 60,
    requests: [
      {
        method: "POST",
        path: "/api/v1/mint",
        headers: { "content-type": "application/json", "x-api-key": apiKey },
        setupRequest: (request) => ({ ...request, body: bodies[next++ % bodies.length] }),
      },
    ],
  };
  let next = 0;
  let last = 0;
  const start = performance.now();
  return new Promise((done, failed) => {
    const run = autocannon(options, (error, { "2xx": minted, errors, statusCodeStats }) => {
      if (error !== null) failed(error);
      else if (minted === bodies.length) done((minted / (last - start)) * 1000);
      else
        failed(new Error(`${minted} of ${bodies.length} were minted; ${JSON.stringify({ errors, statusCodeStats })}`));
    });
    run.on("response", () => {
      last = performance.now();
    });
  });
}
