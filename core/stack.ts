/** Ends what was begun, the last first, as `AsyncDisposableStack` does, which Node 22 lacks. */
export class Stack implements AsyncDisposable {
  #ends: (() => unknown)[] = [];

  /** Ends the value with this stack. */
  use<T extends AsyncDisposable | Disposable>(value: T): T {
    this.defer(() =>
      Symbol.asyncDispose in value ? value[Symbol.asyncDispose]() : value[Symbol.dispose](),
    );
    return value;
  }

  defer(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** Hands all over to a new stack, so that this one ends nothing. */
  move(): Stack {
    const moved = new Stack();
    moved.#ends = this.#ends;
    this.#ends = [];
    return moved;
  }

  /** Ends all, whatever fails, and then rejects with the first failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (let end = this.#ends.pop(); end !== undefined; end = this.#ends.pop()) {
      try {
        await end();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
