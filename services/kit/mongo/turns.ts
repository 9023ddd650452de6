/** Runs work of the same name one after the other. */
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
