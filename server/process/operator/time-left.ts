/** Below this part of the work, the rate so far tells too little. */
const MEASURED = 0.01;

/**
 * Adds to each report of progress how much of the work is done, and the time that is left by the
 * rate so far.
 *
 * @param clock - milliseconds of any origin
 */
export function withTimeLeft(
  progress: (where: string) => void,
  clock: () => number = () => performance.now(),
): (what: string, share: number) => void {
  const start = clock();
  return (what, share) => {
    const percent = `${Math.floor(100 * share)} %`;
    if (share < MEASURED || share >= 1) return progress(`${what}, ${percent}`);
    const seconds = ((clock() - start) / 1_000) * ((1 - share) / share);
    progress(`${what}, ${percent}, ${spoken(seconds)} left`);
  };
}

/** `40 s`, `12 min` or `3.5 h`. */
function spoken(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`;
}

/** The callbacks of work on a journal, which show its entries and the time that is left. */
export function entriesShown(progress: (where: string) => void) {
  const timed = withTimeLeft(progress);
  let read = 0;
  return {
    onProgress(entries: number): void {
      read = entries;
    },
    onShare: (share: number) => timed(`${read} journal entries`, share),
  };
}
