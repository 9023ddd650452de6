import type { DescField } from "@bufbuild/protobuf";
import type { FieldRules } from "#proto/buf/validate/validate_pb.ts";

/** Values of a field: those at the edge of its rules, and the nearest beyond. Undefined: the field is not set. */
export interface RuleValues {
  within: readonly unknown[];
  beyond: readonly unknown[];
}

/** Texts that just fit a pattern, and texts that just do not. */
const byPattern: Readonly<Record<string, RuleValues>> = {
  "^act_[a-z0-9]{20}$": sized(20, 20, (n) => `act_${"a".repeat(n)}`),
  "^evt_[a-z0-9]{24}$": sized(24, 24, (n) => `evt_${"a".repeat(n)}`),
  "^[a-z0-9_]{8,40}$": sized(8, 40, letters),
  "^[A-Za-z0-9_.:-]{1,128}$": sized(1, 128, letters),
  "^([A-Za-z0-9_-]{20,200})?$": {
    within: ["", letters(20), letters(200)],
    beyond: [letters(19), letters(201)],
  },
  "^[a-z][a-z0-9._-]{0,31}$": sized(1, 32, letters),
  "^[a-z_]{1,29}\\.[a-z_]{1,30}$": {
    within: ["a.b", `${letters(29)}.${letters(30)}`],
    beyond: [".b", "a.", `${letters(30)}.b`, `a.${letters(31)}`],
  },
};

/** Texts and items that a field needs where letters do not do. */
export interface Material {
  /** A text of `n` characters. */
  text?: (n: number) => string;
  /** The item at a place of a list. */
  item?: (i: number) => unknown;
}

/** The values of a field by its rules. Throws where the rules have a part that this does not know. */
export function valuesOf(
  field: DescField,
  rules: FieldRules,
  { text = letters, item = letters }: Material = {},
): RuleValues {
  const { type } = rules;
  switch (type.case) {
    case "int32":
      return numbers(type.value, type.value.in, (n, step) => n + step);
    case "int64":
      return numbers(type.value, [], (n, step) => n + BigInt(step));
    case "double":
      return { within: [0.5], beyond: [Number.NaN, Number.POSITIVE_INFINITY] };
    case "string": {
      const { pattern, minLen = 0n, maxLen } = type.value;
      if (pattern !== "") return byPattern[pattern] ?? unknown(field, pattern);
      return sized(Number(minLen), Number(maxLen), text);
    }
    case "bytes": {
      const { len, maxLen } = type.value;
      const bytes = (n: number) => new Uint8Array(n);
      return len > 0n ? sized(Number(len), Number(len), bytes) : sized(0, Number(maxLen), bytes);
    }
    case "enum":
      return { within: [1], beyond: type.value.definedOnly ? [0, 9_999] : [0] };
    case "repeated": {
      const { minItems, maxItems, items } = type.value;
      if (items?.type.case === "enum") return { within: [[1]], beyond: [[0], [9_999]] };
      return sized(Number(minItems), Number(maxItems), (n) =>
        Array.from({ length: n }, (_, i) => item(i)),
      );
    }
    case undefined:
      if (rules.required) return { within: [], beyond: [undefined] };
      return unknown(field, "no rule");
    default:
      return unknown(field, type.case);
  }
}

function letters(n: number): string {
  return "a".repeat(n);
}

/** Of the least and the most size, and of one less and one more. */
function sized(least: number, most: number, make: (n: number) => unknown): RuleValues {
  const beyond = [...(least > 0 ? [least - 1] : []), most + 1];
  return { within: [...new Set([least, most])].map(make), beyond: beyond.map(make) };
}

interface Bounds<T> {
  greaterThan: { case: string | undefined; value?: T | undefined };
  lessThan: { case: string | undefined; value?: T | undefined };
}

function numbers<T extends number | bigint>(
  { greaterThan, lessThan }: Bounds<T>,
  listed: readonly T[],
  next: (n: T, step: 1 | -1) => T,
): RuleValues {
  const least = greaterThan.case === "gte" ? greaterThan.value : undefined;
  const most = lessThan.case === "lte" ? lessThan.value : undefined;
  return {
    within: [least, most, ...listed].filter((n) => n !== undefined),
    beyond: [
      ...(least === undefined ? [] : [next(least, -1)]),
      ...(most === undefined ? [] : [next(most, 1)]),
      ...listed.map((n) => next(n, 1)),
    ],
  };
}

function unknown(field: DescField, what: string): never {
  throw new Error(`${field}: no values for ${what}`);
}
