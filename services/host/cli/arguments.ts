// Reads the values of arguments and options that several commands share, and adds examples to their help.

import { type Command, InvalidArgumentError, Option } from "commander";
import { limitResetOf } from "#common/words/key-limits.ts";
import { scopeNames } from "#common/words/scopes.ts";
import { isoMs } from "#kit/base/iso-time.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { KeyLimitReset, type Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { ConfigError } from "../env.ts";

/** Amounts of money and credits: whole numbers of at most 15 digits. */
export function amount(value: string): bigint {
  if (!/^\d{1,15}$/.test(value))
    throw new InvalidArgumentError("It must be a whole number of up to 15 digits.");
  return BigInt(value);
}

/** US dollars, read by their decimal digits as whole micros, so that no amount is rounded. */
export function usd(value: string): bigint {
  const [, whole, decimals = ""] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(value) ?? [];
  if (whole === undefined) {
    throw new InvalidArgumentError(
      "It must be US dollars such as 5 or 0.25: up to 9 digits and at most 6 decimals, without sign, comma or exponent.",
    );
  }
  return BigInt(whole + decimals.padEnd(6, "0"));
}

/** An amount, or none. Commander reads a null as an empty text. */
export type AmountOrNone = bigint | "none";

/** An amount, or "none". */
export function amountOrNone(value: string): AmountOrNone {
  return value === "none" ? value : amount(value);
}

/** US dollars as whole micros, or "none". */
function usdOrNone(value: string): AmountOrNone {
  return value === "none" ? value : usd(value);
}

/** Adds `--NAME <dollars>` and, for programs, `--NAME-micros <micros>`. They may not be given together. */
export function moneyOption(
  command: Command,
  name: string,
  { words, orNone = false }: { words: string; orNone?: boolean },
): Command {
  const inMicros = new Option(`--${name}-micros <micros>`, `--${name} in millionths of a dollar`);
  const inDollars = new Option(`--${name} <dollars>`, words).conflicts(inMicros.attributeName());
  return command
    .addOption(inDollars.argParser(orNone ? usdOrNone : usd))
    .addOption(inMicros.argParser(orNone ? amountOrNone : amount));
}

/** Adds `--usd <dollars>` and `--amount <amount>`, in a wallet's unit. They may not be given together. */
export function sumOption(command: Command, words: string): Command {
  return command
    .addOption(
      new Option("--usd <dollars>", `${words}, of the dollar wallet`)
        .argParser(usd)
        .conflicts("amount"),
    )
    .option("--amount <amount>", `${words}, in credits or millionths of a dollar`, amount);
}

/** The values of {@link sumOption}. */
export interface Sum {
  usd?: bigint;
  amount?: bigint;
}

/** The amount in `unit`. Undefined where none was given. */
export function sumIn(unit: Unit, { usd, amount = usd }: Sum): bigint | undefined {
  if (usd !== undefined && unit !== Unit.USD_MICROS) {
    throw new ConfigError("--usd is for the dollar wallet: give --amount for credits");
  }
  return amount;
}

/** The value in JSON. */
export function numberOrNull(value: AmountOrNone): number | null {
  return value === "none" ? null : Number(value);
}

/** The values of --limit-reset. */
export const limitResets = "daily, weekly, monthly or never (UTC; weeks begin on Mondays)";

/** The period of a limit. */
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

/** A time in ISO 8601, as milliseconds since the epoch. */
export function time(value: string): number {
  const ms = isoMs(value);
  if (ms === undefined)
    throw new InvalidArgumentError("It must be a time like 2027-01-31T00:00:00Z.");
  return ms;
}

/** An operation id that auth and billing accept, with room for the prefix of an account's first funds. */
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

/** Adds examples to a command's help. They work unchanged, except for the ids. */
export function withExamples(command: Command, ...calls: string[]): Command {
  const lines = calls.map((call) => `\n  $ npx genmesh ${call}`);
  return command.addHelpText("after", `\nExamples:${lines.join("")}`);
}
