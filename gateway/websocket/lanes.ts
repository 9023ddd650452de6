// Decides which waiting message of a socket is next. Requests of one conversation must not overtake each other.

/** Items in lanes. Those of a lane go one after the other, in the order in which they came, and lanes take turns. */
export class Lanes<T> {
  /** Lanes with an item that waits, the one whose turn is next first. */
  readonly #waiting = new Map<string, T[]>();
  /** Lanes with an item under way. */
  readonly #busy = new Set<string>();

  add(lane: string, item: T): void {
    const before = this.#waiting.get(lane);
    if (before) before.push(item);
    else this.#waiting.set(lane, [item]);
  }

  /** Begins the next item. Undefined where none waits in a lane that is free. Call `end` with its lane. */
  begin(): { lane: string; item: T } | undefined {
    for (const [lane, [item, ...rest]] of this.#waiting) {
      if (item === undefined || this.#busy.has(lane)) continue;
      this.#waiting.delete(lane);
      // A lane that was served goes behind the others.
      if (rest.length > 0) this.#waiting.set(lane, rest);
      this.#busy.add(lane);
      return { lane, item };
    }
    return undefined;
  }

  end(lane: string): void {
    this.#busy.delete(lane);
  }

  /** Takes out all items that wait. */
  drain(): T[] {
    const items = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    return items;
  }
}
