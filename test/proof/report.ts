import type { Finding, Result } from "./suite.ts";

/** Lines of one failure: the difference of two values, not their whole text. */
const messageLines = 15;
/** The last lines of a failed command's output have its error. */
const outputLines = 40;
/** Lines of the short list at the end of a long report. */
const shortLines = 40;
const glanceLines = 58;

/**
 * The failures with their reasons, the second tries that passed, and the counts. It is the end of a run's output, and all that a reader
 * needs.
 */
export function report(results: readonly Result[]): string {
  const red = results.flatMap((result) => result.red);
  const tried = results.flatMap((result) => result.secondTries);
  const lines = [...red.flatMap(inFull), ...tried.map(triedAgain)];
  if (lines.length > glanceLines && red.length > 1) {
    lines.push("", "in short:", ...red.slice(0, shortLines).map((one) => `!! ${titleOf(one)}`));
    if (red.length > shortLines) lines.push(`!! and ${red.length - shortLines} more, above`);
  }
  return [...lines, counts(results, red.length)].join("\n");
}

function counts(results: readonly Result[], failed: number): string {
  const sum = (of: (result: Result) => number) => results.reduce((all, one) => all + of(one), 0);
  const [passed, skipped] = [sum((one) => one.passed), sum((one) => one.skipped)];
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

function inFull(finding: Finding): string[] {
  const lines = finding.message.split("\n").filter((line) => line.trim() !== "");
  // A test's error begins with its reason, a command's output ends with it.
  const isTest = finding.place !== "";
  const shown = isTest ? lines.slice(0, messageLines) : lines.slice(-outputLines);
  return [`!! ${titleOf(finding)}`, ...shown.map((line) => `     ${line.slice(0, lineLength)}`)];
}

/** Characters. A longer line is data. */
const lineLength = 300;

const titleOf = ({ part, name, place }: Finding) =>
  place === "" ? `${part}: ${name}` : `${part}: ${place} > ${name}`;

function triedAgain(finding: Finding): string {
  const [first = ""] = finding.message.split("\n");
  return `tried again, and passed: ${titleOf(finding)}: ${first.slice(0, lineLength)}`;
}
