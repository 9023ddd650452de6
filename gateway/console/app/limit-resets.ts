import type { LimitReset } from "./types.ts";

/** Choices of when a key's limit begins anew; as values of a form, where null has no place. */
export const limitResets = [
  { value: "daily", label: "each day" },
  { value: "weekly", label: "each Monday" },
  { value: "monthly", label: "each month" },
  { value: "never", label: "never" },
] as const;

/** A choice as the API takes it. */
export const resetOf = (choice: string): LimitReset | null =>
  choice === "never" ? null : (choice as LimitReset);

/** What of a key's spending its limit counts, in words. */
export function periodWords(reset: LimitReset | null | undefined): string {
  if (reset === "daily") return "today";
  if (reset === "weekly") return "this week";
  return reset === "monthly" ? "this month" : "in all";
}
