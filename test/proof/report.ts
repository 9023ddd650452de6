import type { Finding, Result } from "./suite.ts";

/** Lines of one failure: the difference of two values, and not the whole of them. */
const messageLines = 15;
/** A red command says by its last lines what is wrong. */
const outputLines = 40;
/** Of the short list that stands behind a report which is longer than what is looked at of it. */
const shortLines = 40;
const glanceLines = 58;

/** What is red and why, what passed at its second try, and the counts: the end of a run's output, and all that is to be read of it. */
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
  // A test's error begins with what is wrong, a command's output ends with it.
  const isTest = finding.place !== "";
  const shown = isTest ? lines.slice(0, messageLines) : lines.slice(-outputLines);
  return [`!! ${titleOf(finding)}`, ...shown.map((line) => `     ${line.slice(0, lineLength)}`)];
}

/** Characters; what is longer is data. */
const lineLength = 300;

const titleOf = ({ part, name, place }: Finding) =>
  place === "" ? `${part}: ${name}` : `${part}: ${place} > ${name}`;

function triedAgain(finding: Finding): string {
  const [first = ""] = finding.message.split("\n");
  return `tried again, and passed: ${titleOf(finding)}: ${first.slice(0, lineLength)}`;
}
