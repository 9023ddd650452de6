/**
 * `source`, each step of which runs within `enter`; `over` hears once of its end, its error, or its reader's leaving. As
 * thin as can be, for every delta passes through.
 */
export function followed<T>(
  source: AsyncIterable<T>,
  enter: <R>(work: () => R) => R,
  over: (error: unknown) => void,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const it = source[Symbol.asyncIterator]();
      const pass = (result: IteratorResult<T>) => {
        if (result.done) over(undefined);
        return result;
      };
      const fail = (error: unknown) => {
        over(error);
        throw error;
      };
      return {
        next: () => enter(() => it.next()).then(pass, fail),
        async return(value) {
          over(undefined);
          await enter(() => it.return?.(value));
          return { done: true, value };
        },
      };
    },
  };
}
