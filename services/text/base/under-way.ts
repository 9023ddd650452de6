// A set of running work that can be waited for, so that a process ends after its requests.

/** The work of one kind that is under way. */
export class UnderWay<T> implements Iterable<T> {
  readonly #all = new Set<T>();
  #none: PromiseWithResolvers<void> | undefined;

  began(work: T): void {
    this.#all.add(work);
  }

  /** The work is over. May be called twice. */
  ended(work: T): void {
    this.#all.delete(work);
    if (this.#all.size > 0) return;
    this.#none?.resolve();
    this.#none = undefined;
  }

  /** Resolves when nothing is under way. */
  async whenNone(): Promise<void> {
    while (this.#all.size > 0) {
      this.#none ??= Promise.withResolvers();
      await this.#none.promise;
    }
  }

  /** All of it, as it is now. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#all].values();
  }
}
