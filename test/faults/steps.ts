import type { FailPoint } from "../../services/media/fail-points.ts";

/** With `GENMESH_TEST_STEPS=all` processes die at every step in every world, and all versions of a server are used. */
export const isEveryStep = process.env.GENMESH_TEST_STEPS === "all";

/**
 * The steps at which the processes of a suite die: those of `sample`, or all of them with {@link isEveryStep}. The cheapest world, one
 * process on the embedded stores, always has every step. The sample of another world has the steps at which that world decides.
 */
export function stepsOf<Step extends FailPoint>(
  all: readonly Step[],
  sample: readonly NoInfer<Step>[],
): readonly Step[] {
  return isEveryStep ? all : sample;
}
