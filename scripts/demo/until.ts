/** Polls a few times a second until `done`; rejects after a minute. */
export async function until<T>(what: string, ask: () => Promise<T>, done: (answer: T) => boolean): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if (done(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`after a minute still waiting for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
