import { isAwayRefusal } from "./errors.ts";

/**
 * Runs work of the same name one after the other. Requests for the same place in a unique index come together: a server that keeps such
 * an index by locks has each two of them wait for each other, a second a pair. With turns only other processes can come in between.
 *
 * Where work is refused because the database is away, all that waits behind it is refused with it and never begun: the last of many
 * would else wait for a server that is gone as often as there are others before it. What comes later is tried again.
 */
export function createTurns(): <T>(name: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<void>>();
  return (name, work) => {
    const done = (last.get(name) ?? Promise.resolve()).then(work);
    const settled = done.then(
      () => {},
      (error: unknown) => {
        if (isAwayRefusal(error)) throw error;
      },
    );
    const leave = () => {
      if (last.get(name) === settled) last.delete(name);
    };
    settled.then(leave, leave);
    last.set(name, settled);
    return done;
  };
}
