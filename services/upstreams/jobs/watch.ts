// Looks at a task of a declared upstream until it is done or has failed, and asks for its result.

import type { JsonObject } from "#kit/base/json.ts";
import { errorIn, isPolicyCode } from "../call.ts";
import type { DriverContext } from "../media/context.ts";
import type { Call, JsonReply } from "../media/exchange.ts";
import {
  failed,
  isWorthRepeating,
  StatusError,
  toGenerationError,
  unknown,
} from "../media/faults.ts";
import { generateTimes, generateTries } from "../media/limits.ts";
import { asProgress, pauseOf } from "../media/poll.ts";
import { GenerationError, type GenerationTask } from "../media/port.ts";
import { withTries } from "../media/retries.ts";
import { meaningOf, textAt, valuesAt } from "./answers.ts";
import { ask, bodyOfStep, callOfStep, type Declared } from "./ask.ts";
import { type Declaration, type Meaning, meanings, type Step } from "./declaration.ts";
import { unknownState } from "./events.ts";

/** Looks at a task that the upstream does not know, and the least time from the first to the last, before it counts as lost. */
const missing = { looks: 3, named: 30_000, maybe: 60_000 };

type Poll = NonNullable<Declaration["poll"]>;

/**
 * Looks at a task until it is done, and resolves with that answer. `maybe`: the task may never have
 * come to the upstream. Then `nowhere` means that it is not there. Rejects with a GenerationError, or the signal's reason.
 */
export async function watchDeclared(
  context: DriverContext,
  task: GenerationTask,
  declared: Declared,
  maybe = false,
): Promise<JsonObject | "nowhere"> {
  /** A task that was seen once is there. When it goes away later, it was paid for. */
  let isUncertain = maybe;
  const { clock } = context;
  const { poll } = declared.declaration;
  if (!poll) throw failed("the upstream's tasks cannot be looked at");
  const { firstPauseMs, longestPauseMs } = generateTimes;
  let pauseMs = poll.everyMs ?? firstPauseMs;
  let absence: { since: number; looks: number } | undefined;
  for (;;) {
    task.signal.throwIfAborted();
    const reply = await look(context, declared, poll, isUncertain);
    let wantedMs: number | undefined;
    if (reply === "missing") {
      const spreadMs = isUncertain ? missing.maybe : missing.named;
      absence ??= { since: clock.steady(), looks: 0 };
      absence.looks += 1;
      const isOver = clock.steady() - absence.since >= spreadMs;
      if (absence.looks >= missing.looks && isOver) {
        if (isUncertain) return "nowhere";
        throw failed("the upstream does not know the task any longer");
      }
      wantedMs = spreadMs / (missing.looks - 1);
    } else {
      absence = undefined;
      isUncertain = false;
      if (isDone(context, task, declared, reply.body)) return reply.body;
      const percent = percentOf(poll, reply.body);
      if (percent !== undefined) task.progress(percent);
      wantedMs = reply.retryAfterMs;
    }
    await clock.sleep(pauseOf({ retryAfterMs: wantedMs }, pauseMs), task.signal);
    if (poll.everyMs === undefined) pauseMs = Math.min(pauseMs * 1.5, longestPauseMs);
  }
}

/**
 * The answer of a step that says the state or the result. `missing`: the upstream does not know the task. `maybe`: the task may never have
 * come there. Then 404 alone says so, because a task that is begun again is paid for twice.
 */
async function look(
  context: DriverContext,
  declared: Declared,
  step: Step & { body?: JsonObject | undefined },
  maybe = false,
): Promise<JsonReply | "missing"> {
  const { signal } = declared;
  const tries = { most: generateTries.look, mayRepeat: isLookedAtAgain, signal };
  try {
    return await withTries(context, tries, async () => {
      const call = await callOfStep(context, declared, step, bodyOfStep(step, declared));
      return ask(context, { ...call, timeoutMs: generateTimes.lookMs, refusal: marked(declared) });
    });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof StatusError && isMissing(error, maybe)) return "missing";
    if (maybe && error instanceof StatusError) {
      throw unknown("the upstream does not say whether it has the task", { cause: error });
    }
    // The task runs and is paid for, also where a look is refused.
    if (isLookedAtAgain(error)) throw unknown("the upstream cannot be asked", { cause: error });
    throw toGenerationError(error, true);
  }
}

/** Asks for the output of a task that is done. */
export async function resultOf(
  context: DriverContext,
  declared: Declared,
  step: Step & { body?: JsonObject | undefined },
): Promise<JsonObject> {
  const reply = await look(context, declared, step);
  if (reply === "missing") throw failed("the upstream does not have the task's output");
  const meaning = meaningOf(declared.declaration.answers, meanings, reply.body, true);
  raiseMeaning(meaning);
  // The task is done and paid for. A later attempt asks for its output again.
  if (meaning !== undefined) throw unknown("the upstream does not give the task's output now");
  return reply.body;
}

/** Statuses of a look that say nothing of the task. */
const passing: ReadonlySet<number> = new Set([401, 403, 408, 409, 425, 429]);

function isLookedAtAgain(error: unknown): boolean {
  if (error instanceof GenerationError) return error.fault === "unknown";
  if (!(error instanceof StatusError)) return isWorthRepeating(error);
  return error.status >= 500 || passing.has(error.status);
}

/** Every other status that is no success. `maybe`: 404 alone. */
function isMissing({ status }: StatusError, maybe: boolean): boolean {
  return maybe ? status === 404 : status >= 400;
}

/** The error that the body of a refused look means for the task. */
function marked({ declaration }: Declared): NonNullable<Call["refusal"]> {
  return (status, body) => {
    // An upstream may know a task a moment after it has named it, so 404 is looked at again.
    if (status >= 500 || status === 404 || passing.has(status)) return undefined;
    const meaning = meaningOf(declaration.answers, meanings, body);
    if (meaning === undefined) return undefined;
    const isOver = meaning === "refused" || meaning === "failed";
    return isOver ? errorOf(meaning) : unknown("the upstream does not say how the task is");
  };
}

/** Is the task done? Throws a GenerationError where it has failed. A running state wins over everything else in the answer. */
function isDone(
  context: DriverContext,
  { request }: GenerationTask,
  { declaration, upstream }: Declared,
  body: JsonObject,
): boolean {
  const { answers, poll, states = {} } = declaration;
  const state = poll && textAt(poll.state, body);
  const meant = state !== undefined && Object.hasOwn(states, state) ? states[state] : undefined;
  if (state !== undefined && meant === undefined) unknownState(context, upstream, state, request);
  if (meant === "running") return false;
  // A pattern of busy upstreams comes before "everything else has failed". Such a look says nothing of the task.
  raiseMeaning(meaningOf(answers, meanings, body, meant === "done"));
  if (meant === "done") return true;
  if (meant === undefined) return false;
  const { code, type } = errorIn(body);
  raiseMeaning(isPolicyCode(code) || isPolicyCode(type) ? "refused" : meant);
  return false;
}

function raiseMeaning(meaning: Meaning | undefined): void {
  if (meaning === "refused" || meaning === "failed") throw errorOf(meaning);
}

/** The error of a task that the upstream refused, or that failed there. */
export function errorOf(meaning: "refused" | "failed"): GenerationError {
  return meaning === "refused"
    ? new GenerationError("content_policy", "the upstream refused the content")
    : failed("the upstream's task failed");
}

function percentOf({ progress, progressOf }: Poll, body: JsonObject): number | undefined {
  if (progress === undefined) return undefined;
  const value = Number(valuesAt(progress, body)[0] ?? Number.NaN);
  if (!Number.isFinite(value)) return undefined;
  return asProgress((value / progressOf) * 100);
}
