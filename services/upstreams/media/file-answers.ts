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

/** Answers of an upstream that may have files in them. The last one lies in memory until it is released. */
export interface FileAnswers extends Disposable {
  /** Asks for one; the one before is released. In a body of more than `freeBytes` long texts are marks. */
  ask: Ask;
  /** What a text of the last body is. */
  text(value: string): string | LongText;
  /** Waits for the room that a file of the last answer needs while it is stored. */
  hold(): Promise<void>;
  /** Nothing of the last answer is needed any more. */
  release(): void;
}

/** Bounds of such an answer. */
export interface AnswerBounds {
  /** All of it. */
  maxBytes?: number;
  /** What it says beside its files; so much lies in memory without room. */
  freeBytes?: number;
}

/** Asks for the answers of one task. Disposing releases the last. */
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
      // A file takes longer than a state, whose head comes as soon.
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
