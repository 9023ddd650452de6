import type { Clock } from "#kit/clock.ts";
import type { Unseen } from "../upstreams/text/hidden-output.ts";
import type { ReportedUsage } from "../upstreams/text/port.ts";
import { habitsKeptMs, provingAnswers, silentItemTokens } from "./limits.ts";

/** A whole answer whose upstream reported its usage. */
export interface WholeAnswer {
  usage: ReportedUsage;
  /** Of its text in UTF-8, reasoning that was shown included. */
  bytes: number;
  unseen: Unseen | undefined;
}

/**
 * What whole answers of a model told this process: does it think unseen. It decides whether its silence costs a caller that leaves; how
 * much is never learned from answers, see pace.ts. No caller can make a model look less thoughtful than it was within the last hour.
 */
export interface ModelHabits {
  note(modelId: string, answer: WholeAnswer): void;
  /** Did it generate what was not shown? Undefined where too few whole answers of it are known. */
  thinks(modelId: string): boolean | undefined;
}

interface Habits {
  thinks: boolean;
  answers: number;
}

/** Makes {@link ModelHabits} that knows of no answer. One entry a model of the catalog. */
export function createModelHabits(clock: Clock): ModelHabits {
  let recent = new Map<string, Habits>();
  let before = new Map<string, Habits>();
  let sinceMs = clock.steady();
  /** Two halves, so that what is older than an hour goes without a time for each model. */
  const both = (modelId: string): Habits[] => {
    const nowMs = clock.steady();
    if (nowMs - sinceMs >= habitsKeptMs) {
      before = nowMs - sinceMs >= 2 * habitsKeptMs ? new Map() : recent;
      recent = new Map();
      sinceMs = nowMs;
    }
    return [recent.get(modelId), before.get(modelId)].filter((one) => one !== undefined);
  };
  return {
    note(modelId, answer) {
      both(modelId);
      const known = recent.get(modelId) ?? { thinks: false, answers: 0 };
      recent.set(modelId, {
        thinks: known.thinks || hasHidden(answer),
        answers: known.answers + 1,
      });
    },
    thinks(modelId) {
      const known = both(modelId);
      if (known.some(({ thinks }) => thinks)) return true;
      const answers = known.reduce((sum, one) => sum + one.answers, 0);
      return answers < provingAnswers ? undefined : false;
    },
  };
}

/** Was more generated than the text can have been (a token is a byte at least), or more thought than was shown? */
function hasHidden({ usage, bytes, unseen }: WholeAnswer): boolean {
  const { outputTokens, reasoningTokens = 0 } = usage;
  const shown = unseen?.shownCharacters ?? 0;
  return outputTokens > bytes + silentItemTokens || reasoningTokens > shown;
}
