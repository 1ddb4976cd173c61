import { type ErrorCode, type Issue, MAX_ISSUES, MintmarkError } from "../errors.ts";

/** One issue and its place: -1 for the request or the whole user. */
interface Found {
  readonly user: number;
  readonly mint: number;
  readonly issue: Issue;
}

/** Reports a fault in a field of an entry, by the entry's position among those of all users. */
export type EntryReport = (entry: number, path: string, code: ErrorCode, detail: string) => void;

/** Collects the first {@link MAX_ISSUES} issues of a request in any order, and reports them in request order. */
export class Issues {
  readonly #found: Found[] = [];

  #more = false;

  get empty(): boolean {
    return this.#found.length === 0;
  }

  ofRequest(path: string, code: ErrorCode, detail: string): void {
    this.#add({ user: -1, mint: -1, issue: { pointer: path, code, detail } });
  }

  ofUser(user: number, path: string, code: ErrorCode, detail: string): void {
    this.#add({ user, mint: -1, issue: { pointer: `/users/${user}${path}`, code, detail } });
  }

  ofMint(user: number, mint: number, path: string, code: ErrorCode, detail: string): void {
    this.#add({ user, mint, issue: { pointer: `/users/${user}/mints/${mint}${path}`, code, detail } });
  }

  /** Whether the next issue would be left out. */
  get full(): boolean {
    return this.#found.length === MAX_ISSUES;
  }

  /** Whether issues were left out. Then later issues change nothing. */
  get more(): boolean {
    return this.#more;
  }

  #add(found: Found): void {
    if (this.full) this.#more = true;
    else this.#found.push(found);
  }

  /** Throws all issues as one error, if there are any, with the code of the first in request order. */
  throwIfAny(): void {
    this.#found.sort((a, b) => a.user - b.user || a.mint - b.mint);
    const issues = this.#found.map(({ issue }) => issue);
    const first = issues[0];
    if (first === undefined) return;
    const count = this.#more ? `the first ${issues.length}` : issues.length;
    const others = issues.length === 1 ? "" : ` (${count} bad entries)`;
    const detail = `${first.pointer || "The request"}: ${first.detail}${others}`;
    throw new MintmarkError(first.code, detail, { issues, moreIssues: this.#more });
  }
}
