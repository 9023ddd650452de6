// Prints the results of commands: JSON for programs, tables for people, amounts of money. Nothing here knows a command.

import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";

/** The two streams of a command. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
  json: boolean;
}

/** One JSON object on one line. A bigint is a number where that is safe, otherwise a string. Times are ISO 8601. */
export function printJson(output: Output, value: unknown): void {
  output.out(
    `${JSON.stringify(value, (_, one) => (typeof one === "bigint" ? jsonNumber(one) : one))}\n`,
  );
}

/** Aligned columns for people, numbers to the right. An empty table prints `empty`. */
export function printTable(output: Output, head: string[], rows: string[][], empty: string): void {
  if (rows.length === 0) {
    output.out(`${empty}\n`);
    return;
  }
  const all = [head, ...rows.map((row) => row.map(printable))];
  const widths = head.map((_, i) => Math.max(...all.map((row) => (row[i] ?? "").length)));
  const numeric = head.map((_, i) => rows.every((row) => /^-?\$?[\d.,]*$/.test(row[i] ?? "")));
  for (const row of all) {
    const cells = row.map((cell, i) =>
      numeric[i] ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
    );
    output.out(`${cells.join("  ").trimEnd()}\n`);
  }
}

/** A name may hold any characters. Those that would move a terminal's cursor are left out. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, " ");
}

/** Prints names and values, a line each. */
export function printFacts(output: Output, facts: [string, string][]): void {
  const width = Math.max(...facts.map(([name]) => name.length));
  for (const [name, value] of facts) output.out(`${name.padEnd(width)}  ${printable(value)}\n`);
}

/** "$12.345678" */
export function dollars(micros: bigint): string {
  const sign = micros < 0n ? "-" : "";
  const abs = micros < 0n ? -micros : micros;
  const cents = (abs % 1_000_000n)
    .toString()
    .padStart(6, "0")
    .replace(/0{0,4}$/, "");
  return `${sign}$${abs / 1_000_000n}.${cents}`;
}

/** A sum of a wallet in a table whose rows name the wallet: "$12.345678", or a number of credits. */
export function sumCell(unit: Unit, sum: bigint): string {
  return unit === Unit.CREDITS ? `${sum}` : dollars(sum);
}

/** A sum with its unit: "$12.345678", or "12 credits". */
export function sumWords(unit: Unit, sum: bigint): string {
  return unit === Unit.CREDITS ? `${sum} credits` : dollars(sum);
}

/** A wallet's name in tables. */
export function walletName(unit: Unit): string {
  return unit === Unit.CREDITS ? "credits" : "US dollars";
}

function jsonNumber(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}
