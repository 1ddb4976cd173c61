import { setImmediate as nextPass } from "node:timers/promises";

/** The passes of the event loop that other work gets during this one. */
export async function passesDuring<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly passes: number }> {
  let passes = 0;
  let isDone = false;
  const counting = (async () => {
    while (!isDone) {
      await nextPass();
      passes++;
    }
  })();
  try {
    const result = await work();
    return { result, passes };
  } finally {
    isDone = true;
    await counting;
  }
}
