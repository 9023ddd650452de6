// Keeps the result of a function for each key, so that it is made once.

/** Calls `make` once for each key and keeps the result. For a small set of keys. */
export function memo<K, V>(make: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>();
  return (key) => {
    if (known.has(key)) return known.get(key) as V;
    const made = make(key);
    known.set(key, made);
    return made;
  };
}

/**
 * Calls `make` at the first need and keeps the result. Where it fails, the caller gets the error, and the next caller makes it
 * again.
 */
export function madeOnce<V>(make: () => Promise<V>): () => Promise<V> {
  let known: Promise<V> | undefined;
  return () => {
    known ??= make().catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
}
