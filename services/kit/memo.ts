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
