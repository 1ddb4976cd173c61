/** Polls a few times a second until `done`; rejects after ten minutes. */
export async function until<T>(
  what: string,
  ask: () => Promise<T>,
  done: (answer: T) => boolean,
): Promise<T> {
  const deadline = Date.now() + 600_000;
  for (;;) {
    const answer = await ask();
    if (done(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`after ten minutes still waiting for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
