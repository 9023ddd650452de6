// Translates between OpenRouter's words for when a key's limit starts over, which callers and operators write, and the values in
// messages and stores.

import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";

/** OpenRouter's words for when a key's limit starts over. Null, beside them, means never. */
const words = {
  daily: KeyLimitReset.DAILY,
  weekly: KeyLimitReset.WEEKLY,
  monthly: KeyLimitReset.MONTHLY,
} as const;

/** One of OpenRouter's words. */
export type LimitResetWord = keyof typeof words;

/** The value of a word. Undefined: it is no such word. */
export function limitResetOf(word: string): KeyLimitReset | undefined {
  return Object.hasOwn(words, word) ? words[word as LimitResetWord] : undefined;
}

/** The word, or null for never. A value that an older peer does not send, or that a newer one sends, is monthly. */
export function limitResetWord(reset: KeyLimitReset): LimitResetWord | null {
  if (reset === KeyLimitReset.NEVER) return null;
  if (reset === KeyLimitReset.DAILY) return "daily";
  return reset === KeyLimitReset.WEEKLY ? "weekly" : "monthly";
}

/** Does this release know the value? */
export function isLimitReset(reset: number): reset is KeyLimitReset {
  return reset >= KeyLimitReset.UNSPECIFIED && reset <= KeyLimitReset.NEVER;
}

/** A stored value. One that this release does not know, of a later release, is monthly. */
export function storedLimitReset(reset: unknown): KeyLimitReset {
  const number = Number(reset);
  return isLimitReset(number) ? number : KeyLimitReset.MONTHLY;
}
