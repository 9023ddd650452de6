// Requests answers that may hold whole files, and keeps such an answer within the memory that jobs share.

import type { HttpReply } from "#kit/upstream/client.ts";
import { objectIn } from "../call.ts";
import type { DriverContext } from "./context.ts";
import { bodyOf } from "./download.ts";
import { exchangeJson } from "./exchange.ts";
import { generateLimits, generateTimes } from "./limits.ts";
import { type LongText, takeLongTexts } from "./long-texts.ts";
import type { Ask } from "./poll.ts";
import type { GenerationTask } from "./port.ts";
import { type Loaded, spool } from "./spool.ts";

/** Answers of an upstream that may hold files. The last one stays in memory until it is released. */
export interface FileAnswers extends Disposable {
  /** Requests an answer, and releases the one before. In a body of more than `freeBytes`, marks replace long texts. */
  ask: Ask;
  /** The text of the last body for a value, which may be a mark. */
  text(value: string): string | LongText;
  /** Waits for the memory that a file of the last answer needs while it is stored. */
  hold(): Promise<void>;
  /** The last answer is not needed any longer. */
  release(): void;
}

/** Bounds of such an answer. */
export interface AnswerBounds {
  /** Bytes of the whole answer. */
  maxBytes?: number;
  /** Bytes beside its files. An answer of that size needs no room in memory. */
  freeBytes?: number;
}

/** Requests the answers of one task. Disposing releases the last. */
export function createFileAnswers(
  context: DriverContext,
  task: Pick<GenerationTask, "accountId" | "signal">,
  {
    maxBytes = generateLimits.imageAnswerBytes,
    freeBytes = generateLimits.answerBytes,
  }: AnswerBounds = {},
): FileAnswers {
  let loaded: Loaded | undefined;
  let longTexts: ReadonlyMap<string, LongText> = new Map();
  const release = () => {
    loaded?.[Symbol.dispose]();
    loaded = undefined;
    longTexts = new Map();
  };
  const read = async (reply: HttpReply) => {
    const chunks = bodyOf(reply, maxBytes);
    await using spooled = await spool(context, task, chunks, { maxBytes, freeBytes });
    loaded = await spooled.load();
    if (loaded.bytes.length <= freeBytes) return objectIn(loaded.bytes);
    const short = await takeLongTexts(loaded.bytes, freeBytes);
    ({ longTexts } = short);
    return objectIn(short.json);
  };
  return {
    async ask(call) {
      release();
      // A file takes longer than a state, whose head comes at about the same time.
      const { timeoutMs: headTimeoutMs } = call;
      const times =
        headTimeoutMs === undefined ? {} : { headTimeoutMs, timeoutMs: generateTimes.outsideMs };
      try {
        return await exchangeJson(context, { ...call, ...times }, maxBytes, read);
      } catch (error) {
        release();
        throw error;
      }
    },
    text: (value) => longTexts.get(value) ?? value,
    hold: async () => loaded?.hold(),
    release,
    [Symbol.dispose]: release,
  };
}
