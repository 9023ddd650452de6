import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";

/** OpenRouter's words for when what counts against a key's limit begins anew, beside null for never. */
const words = {
  daily: KeyLimitReset.DAILY,
  weekly: KeyLimitReset.WEEKLY,
  monthly: KeyLimitReset.MONTHLY,
} as const;

/** One of OpenRouter's words. */
export type LimitResetWord = keyof typeof words;

/** What a word stands for; undefined: it is none. */
export function limitResetOf(word: string): KeyLimitReset | undefined {
  return Object.hasOwn(words, word) ? words[word as LimitResetWord] : undefined;
}

/** The word; null: never. What peers of before do not say is monthly, and so is what peers to come say. */
export function limitResetWord(reset: KeyLimitReset): LimitResetWord | null {
  if (reset === KeyLimitReset.NEVER) return null;
  if (reset === KeyLimitReset.DAILY) return "daily";
  return reset === KeyLimitReset.WEEKLY ? "weekly" : "monthly";
}

/** Is it one that this release knows? */
export function isLimitReset(reset: number): reset is KeyLimitReset {
  return reset >= KeyLimitReset.UNSPECIFIED && reset <= KeyLimitReset.NEVER;
}

/** One that was stored; one that is none, of a later release, is monthly. */
export function storedLimitReset(reset: unknown): KeyLimitReset {
  const number = Number(reset);
  return isLimitReset(number) ? number : KeyLimitReset.MONTHLY;
}
