/** Counts work that is under way. */
export class UnderWay {
  #count = 0;
  #none: PromiseWithResolvers<void> | undefined;

  began(): void {
    this.#count++;
  }

  /** One piece of the work is over. */
  ended(): void {
    this.#count--;
    if (this.#count > 0) return;
    this.#none?.resolve();
    this.#none = undefined;
  }

  /** Resolves when nothing is under way. */
  async whenNone(): Promise<void> {
    while (this.#count > 0) {
      this.#none ??= Promise.withResolvers();
      await this.#none.promise;
    }
  }
}
