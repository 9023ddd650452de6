// A map that cannot grow without end, for all caches.

/** A map of bounded size. When it is full, the entry that was not used for longest is removed. */
export interface BoundedMap<V> {
  readonly size: number;
  /** The value; counts as a use. */
  get(name: string): V | undefined;
  set(name: string, value: V): void;
  delete(name: string): void;
  clear(): void;
  /** The entry not used for longest. */
  oldest(): [name: string, value: V] | undefined;
}

/** Makes an empty map. `onLeave` is called with each entry that is removed for lack of room. */
export function createBoundedMap<V>(
  max: number,
  onLeave: (name: string, value: V) => void = () => {},
): BoundedMap<V> {
  // A Map iterates in the order of insertion. Each use inserts the entry again, so the order is that of use.
  const map = new Map<string, V>();
  const oldest = () => map.entries().next().value;
  return {
    get size() {
      return map.size;
    },
    get(name) {
      const value = map.get(name);
      if (value === undefined) return undefined;
      map.delete(name);
      map.set(name, value);
      return value;
    },
    set(name, value) {
      map.delete(name);
      map.set(name, value);
      if (map.size <= max) return;
      const last = oldest();
      if (!last) return;
      map.delete(last[0]);
      onLeave(...last);
    },
    delete: (name) => void map.delete(name),
    clear: () => map.clear(),
    oldest,
  };
}
