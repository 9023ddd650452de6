/** `make`, asked once for each key. What it made is kept: for keys of which there are few. */
export function memo<K, V>(make: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>();
  return (key) => {
    if (known.has(key)) return known.get(key) as V;
    const made = make(key);
    known.set(key, made);
    return made;
  };
}

/** What `make` gives, made when it is first asked for and kept; where it fails that is told, and it is made anew for the next one. */
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
