// Cancels a task at an upstream whose HTTP the catalog declares, where the declaration says how.

import type { JsonObject } from "#kit/base/json.ts";
import type { DriverContext } from "../media/context.ts";
import { isWorthRepeating, StatusError } from "../media/faults.ts";
import { generateTimes, generateTries } from "../media/limits.ts";
import type { CancelTask } from "../media/port.ts";
import { withTries } from "../media/retries.ts";
import { declarationOf } from "./abilities.ts";
import { isMarked, textAt } from "./answers.ts";
import { ask, bodyOfStep, callOfStep, type Declared, storedValues } from "./ask.ts";
import type { Step } from "./declaration.ts";

/**
 * Cancels a task at its upstream. Where the declaration names states, the task is looked at first, because some upstreams delete the result
 * of a task that has ended. True where the upstream confirms it.
 */
export async function cancelByDeclaration(
  context: DriverContext,
  { upstream, jobId, resumeId, signal }: CancelTask,
): Promise<boolean> {
  const declaration = declarationOf(upstream);
  const { cancel, poll } = declaration;
  if (!cancel) return false;
  const values = { job: jobId, ...storedValues(resumeId) };
  const declared: Declared = { upstream, declaration, values, signal };
  const tries = { most: generateTries.look, mayRepeat: isWorthRepeating, signal };
  const asked = (step: Step & { body?: JsonObject | undefined }) =>
    withTries(context, tries, async () => {
      const call = await callOfStep(context, declared, step, bodyOfStep(step, declared));
      return ask(context, { ...call, timeoutMs: generateTimes.lookMs });
    });
  try {
    if (cancel.when && poll) {
      const { body } = await asked(poll);
      const state = textAt(poll.state, body);
      if (state === undefined || !cancel.when.includes(state)) return false;
    }
    const { body } = await asked(cancel);
    return cancel.says === undefined || isMarked(cancel.says, body);
  } catch (error) {
    // The upstream does not know the task, or it is too late.
    if (error instanceof StatusError && error.status < 500) return false;
    throw error;
  }
}
