// Turns the periods of a key's limit into choices of a form and into words.

import type { LimitReset } from "./types.ts";

/** Choices of when a key's limit resets. They are values of a form, which cannot be null. */
export const limitResets = [
  { value: "daily", label: "each day" },
  { value: "weekly", label: "each Monday" },
  { value: "monthly", label: "each month" },
  { value: "never", label: "never" },
] as const;

/** The API's value of a choice. */
export const resetOf = (choice: string): LimitReset | null =>
  choice === "never" ? null : (choice as LimitReset);

/** The period whose charges a key's limit counts, in words. */
export function periodWords(reset: LimitReset | null | undefined): string {
  if (reset === "daily") return "today";
  if (reset === "weekly") return "this week";
  return reset === "monthly" ? "this month" : "in all";
}
