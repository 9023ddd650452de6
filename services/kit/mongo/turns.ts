/**
 * Runs work of the same name one after the other. Requests for the same place in a unique index come together: a server that keeps such
 * an index by locks has each two of them wait for each other, a second a pair. With turns only other processes can come in between.
 */
export function createTurns(): <T>(name: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (name, work) => {
    const done = (last.get(name) ?? Promise.resolve()).then(work);
    const settled = done
      .catch(() => {})
      .then(() => {
        if (last.get(name) === settled) last.delete(name);
      });
    last.set(name, settled);
    return done;
  };
}
