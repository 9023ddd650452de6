import { type Stage, staged } from "../staged.ts";

/** `source`, each step of which runs within `enter`; `over` hears once of its end, its error, or its reader's leaving. */
export function followed<T>(
  source: AsyncIterable<T>,
  enter: Stage<T>["enter"],
  over: (error: unknown) => void,
): AsyncIterable<T> {
  return staged(source, {
    pass(step) {
      if (step.done) over(undefined);
      return step;
    },
    fail(error) {
      over(error);
      return error;
    },
    leave: () => over(undefined),
    ...(enter ? { enter } : {}),
  });
}
