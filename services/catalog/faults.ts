// Words the faults of a catalog file for its operator: what must be there, and at which path. It never shows a value, because a
// key may have been pasted there.

import type { z } from "zod";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";

/** A fault of a catalog file, and its place. */
export interface Fault {
  /** `models[3].videoOptions[0].credits`. Empty where it concerns the file as a whole. */
  path: string;
  /** One line, without any value from the file. Names the line where that is known. */
  message: string;
}

/** Longest name shown in a path, in characters. A stray key may be a whole document. */
const maxShownCharacters = 60;

/** `["models", 3, "id"]` as `models[3].id`. Names that are not plain words are quoted. */
export function pathText(path: FaultPath): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    if (!/^[A-Za-z_][\w-]*$/.test(part) || part.length > maxShownCharacters) {
      return `${text}[${JSON.stringify(part.slice(0, maxShownCharacters))}]`;
    }
    return text === "" ? part : `${text}.${part}`;
  }, "");
}

/** A fault in one line: `path: message`. */
export function faultText(fault: Fault): string {
  return fault.path === "" ? fault.message : `${fault.path}: ${fault.message}`;
}

/** An issue in the form that zod's error map gets: before it has a message, with the faulty value. */
type RawIssue = z.core.$ZodRawIssue;

const kindsOfType: Record<string, string> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a group of keys",
  record: "a group of keys",
};

/** The text of an issue that has no text yet. Never shows a value from the file. */
export function explainIssue(issue: RawIssue): string {
  if (issue.input === undefined) return "is required";
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kindsOfType[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${oneOf(issue.values)}`;
    case "invalid_union":
      return isMissing(issue) ? "is required" : `must be ${oneOf(choicesOf(issue))}`;
    case "too_small":
      return `${measure(issue.origin)} at least ${issue.minimum}`;
    case "too_big":
      return `${measure(issue.origin)} at most ${issue.maximum}`;
    case "unrecognized_keys":
      return "unknown key";
    default:
      return "is not valid";
  }
}

/** Zod's issues as faults, one for each place. Several unknown keys come as one issue at their parent. */
export function faultsOf(error: z.ZodError): FoundFault[] {
  return error.issues.filter(isTightest).flatMap((issue) => {
    const path = issue.path.filter((part) => typeof part !== "symbol");
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => ({ path: [...path, key], message: issue.message }));
    }
    // A key of a map: the issue inside has the text.
    const message = issue.code === "invalid_key" ? (issue.issues[0]?.message ?? "") : issue.message;
    return [{ path, message }];
  });
}

/** A number beyond the exact range breaks two bounds, the tighter last. */
function isTightest(issue: z.core.$ZodIssue, index: number, all: z.core.$ZodIssue[]): boolean {
  if (issue.code !== "too_big" && issue.code !== "too_small") return true;
  const path = issue.path.join("\n");
  const later = all.slice(index + 1);
  return !later.some(({ code, path: other }) => code === issue.code && other.join("\n") === path);
}

type UnionIssue = Extract<RawIssue, { code: "invalid_union" }>;

function choicesOf(issue: UnionIssue): readonly unknown[] {
  return "options" in issue && Array.isArray(issue.options) ? issue.options : [];
}

function isMissing(issue: UnionIssue): boolean {
  const { discriminator, input } = issue;
  return (
    discriminator !== undefined && (input as Record<string, unknown>)[discriminator] === undefined
  );
}

function oneOf(values: readonly unknown[]): string {
  return values.length === 1 ? String(values[0]) : `one of ${values.map(String).join(", ")}`;
}

function measure(origin: string): string {
  if (origin === "string") return "must have a length of";
  return origin === "array" ? "must have a number of items of" : "must be";
}
