/** Most typing errors in a word that a suggestion mends. */
const MOST_ERRORS = 2;
/** A longer path is compared with no route. */
const LONGEST_PATH = 200;
/** Most of a route's first segments that a path may lack. */
const MOST_MISSING = 2;

/** The known word with the fewest typing errors of a word; null if each has more than two. */
export function nearest(word: string, known: readonly string[]): string | null {
  return leastOf(known, (each) => errorsIn(word, each));
}

/**
 * Finds the route nearest to a method and a path; null if none is near. Any text stands for a
 * `{parameter}`, and a path may lack first segments, such as `api`. Strangers ask for it without
 * limit, so it takes no longer than the rest of the answer.
 *
 * @param routes - e.g. `GET /api/v1/users/{userId}`
 */
export function nearestRoute(
  routes: readonly string[],
): (method: string, path: string) => string | null {
  const known = routes.map((route) => {
    const [method = "", path = ""] = route.split(" ");
    return { route, method, segments: segmentsOf(path) };
  });
  return (method, path) => {
    if (path.length > LONGEST_PATH) return null;
    const given = segmentsOf(path);
    const errorsOf = ({ method: other, segments }: (typeof known)[number]) =>
      errorsInPath(given, segments) + (method === other ? 0 : 1);
    return leastOf(known, errorsOf)?.route ?? null;
  };
}

/** The first of those with the fewest errors; null if all have infinitely many. */
function leastOf<T>(all: readonly T[], errorsOf: (each: T) => number): T | null {
  let [found, fewest]: [T | null, number] = [null, Infinity];
  for (const each of all) {
    const errors = errorsOf(each);
    if (errors < fewest) [found, fewest] = [each, errors];
  }
  return found;
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "");
}

/**
 * The typing errors in all segments, and the missing ones; Infinity if no suggestion mends them.
 */
function errorsInPath(given: readonly string[], route: readonly string[]): number {
  const missing = route.length - given.length;
  if (given.length === 0 || missing < 0 || missing > MOST_MISSING) return Infinity;
  let errors = missing;
  // The last segments differ most between routes.
  for (let i = given.length - 1; i >= 0 && errors < Infinity; i--) {
    const [segment = "", known = ""] = [given[i], route[i + missing]];
    if (!known.startsWith("{")) errors += errorsIn(segment, known);
  }
  return errors;
}

/**
 * The Levenshtein distance of two words: insertions, deletions and changes of letters. Infinity
 * when it exceeds {@link MOST_ERRORS}.
 */
function errorsIn(word: string, known: string): number {
  if (word === known) return 0;
  if (Math.abs(word.length - known.length) > MOST_ERRORS) return Infinity;
  let row = Array.from({ length: known.length + 1 }, (_, i) => i);
  for (let i = 0; i < word.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < known.length; j++) {
      const change = (row[j] ?? 0) + (word[i] === known[j] ? 0 : 1);
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, change));
    }
    if (Math.min(...next) > MOST_ERRORS) return Infinity;
    row = next;
  }
  const errors = row[known.length] ?? 0;
  return errors > MOST_ERRORS ? Infinity : errors;
}
