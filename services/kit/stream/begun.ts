// Finds out whether a stream begins or is refused, before any of it is answered.

import { type Pushed, pushed, pushTo, type Sink } from "./push-stream.ts";

/**
 * Waits for the first value of `source`. Resolves to the whole stream, for one reader. Rejects with an error that comes before the first
 * value. Undefined: the stream has no value.
 */
export function begun<T>(source: AsyncIterable<T>): Promise<Pushed<T> | undefined> {
  return new Promise((resolve, reject) => {
    /** The first value, until the reader takes it. */
    let first: { value: T } | undefined;
    /** The end, where it comes before the reader takes the first value. */
    let over: ((sink: Sink<T>) => void) | undefined;
    let sink: Sink<T> | undefined;
    const ended = (tell: (sink: Sink<T>) => void) => {
      if (sink && !first) tell(sink);
      else over = tell;
    };
    const flow = pushTo(source, {
      push(value) {
        if (sink) return sink.push(value);
        first = { value };
        resolve(pushed(begin));
        return false;
      },
      end() {
        resolve(undefined);
        ended((to) => to.end());
      },
      fail(error) {
        reject(error);
        ended((to) => to.fail(error));
      },
    });
    const begin = (to: Sink<T>) => {
      sink = to;
      return {
        resume() {
          const taken = first;
          first = undefined;
          if (taken && !to.push(taken.value)) return;
          if (over) over(to);
          else flow.resume();
        },
        leave: () => flow.leave(),
      };
    };
    flow.resume();
  });
}
