/** One JSON exchange with the API; rejects with the problem's code and detail when it is refused. */
export async function call<T>(
  api: string,
  path: string,
  options: { apiKey?: string; body?: unknown } = {},
): Promise<T> {
  const { apiKey, body } = options;
  const headers: Record<string, string> = {};
  if (apiKey !== undefined) headers["x-api-key"] = apiKey;
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(`${api}${path}`, {
    headers,
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as T & { code?: string; detail?: string };
  if (!response.ok) throw new Error(`${path}: ${response.status} ${answer.code ?? ""} ${answer.detail ?? ""}`);
  return answer;
}

/** Asks again, a few times a second, until `done`; rejects after a minute. */
export async function until<T>(what: string, ask: () => Promise<T>, done: (answer: T) => boolean): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if (done(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`after a minute still waiting for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
