import { type Command, InvalidArgumentError } from "commander";
import { isoMs } from "#kit/iso-time.ts";
import { limitResetOf } from "#kit/key-limits.ts";
import { scopeNames } from "#kit/scopes.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { KeyLimitReset, type Scope } from "#proto/genmesh/common/v1/access_pb.ts";

/** Amounts of money and credits: whole numbers of at most 15 digits. */
export function amount(value: string): bigint {
  if (!/^\d{1,15}$/.test(value))
    throw new InvalidArgumentError("It must be a whole number of up to 15 digits.");
  return BigInt(value);
}

/** An amount, or none: commander takes a null for an empty text. */
export type AmountOrNone = bigint | "none";

/** An amount, or "none". */
export function amountOrNone(value: string): AmountOrNone {
  return value === "none" ? value : amount(value);
}

/** As JSON has it. */
export function numberOrNull(value: AmountOrNone): number | null {
  return value === "none" ? null : Number(value);
}

/** What --limit-reset takes. */
export const limitResets = "daily, weekly, monthly or never (UTC; weeks begin on Mondays)";

/** When a limit begins anew. */
export function limitReset(value: string): KeyLimitReset {
  const reset = value === "never" ? KeyLimitReset.NEVER : limitResetOf(value);
  if (reset === undefined) throw new InvalidArgumentError(`It must be ${limitResets}.`);
  return reset;
}

/** A wallet's unit. */
export function unit(value: string): Unit {
  if (value === "usd_micros") return Unit.USD_MICROS;
  if (value === "credits") return Unit.CREDITS;
  throw new InvalidArgumentError("It must be usd_micros or credits.");
}

/** A whole number of at least `min`. */
export function wholeNumber(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    }
    return number;
  };
}

/** A time: ISO 8601, answered in milliseconds since the epoch. */
export function time(value: string): number {
  const ms = isoMs(value);
  if (ms === undefined)
    throw new InvalidArgumentError("It must be a time like 2027-01-31T00:00:00Z.");
  return ms;
}

/** An operation id that auth and billing take alike, with room for the prefix of an account's first funds. */
export function operationId(value: string): string {
  if (!/^[A-Za-z0-9_.:-]{1,100}$/.test(value))
    throw new InvalidArgumentError("It must be 1 to 100 characters of A-Z, a-z, 0-9, _ . : and -.");
  return value;
}

/** Collects a repeatable --scope. */
export function scope(value: string, before: Scope[] = []): Scope[] {
  const found = scopeNames[value];
  if (found === undefined) {
    throw new InvalidArgumentError(`It must be one of: ${Object.keys(scopeNames).join(", ")}.`);
  }
  return [...before, found];
}

/** Collects a repeatable option. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

/** Ends a command's help with calls that work as they stand (but for the ids). */
export function withExamples(command: Command, ...calls: string[]): Command {
  const lines = calls.map((call) => `\n  $ npx genmesh ${call}`);
  return command.addHelpText("after", `\nExamples:${lines.join("")}`);
}
