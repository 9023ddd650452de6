import type { FailPoint } from "../../services/media/fail-points.ts";

/** `GENMESH_TEST_STEPS=all`: processes die at every step in every world, and every version of a server is met. */
export const isEveryStep = process.env.GENMESH_TEST_STEPS === "all";

/**
 * Where the processes of a suite die: at the steps of `sample`, or at all of them where it is asked for. Every step is always looked
 * at where that is cheapest, in one process on the embedded stores; the sample of another world holds those at which its world tells
 * what follows.
 */
export function stepsOf<Step extends FailPoint>(
  all: readonly Step[],
  sample: readonly NoInfer<Step>[],
): readonly Step[] {
  return isEveryStep ? all : sample;
}
