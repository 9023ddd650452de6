// A field for dollars that turns text into the exact integer of micros. Forms about money share it.

import type { ComponentChildren } from "preact";
import { TextField } from "./form.tsx";

/** "1.5" as 1500000, from its digits, because a floating-point product may be a micro off. "" is undefined. */
export function microsOf(dollars: string): number | undefined {
  if (dollars === "") return undefined;
  const [whole = "0", fraction = ""] = dollars.split(".");
  return Number(BigInt(whole || "0") * 1_000_000n + BigInt(fraction.padEnd(6, "0").slice(0, 6)));
}

export function dollarsOf(micros: number | null | undefined): string {
  if (micros === null || micros === undefined) return "";
  const text = String(micros).padStart(7, "0");
  return `${text.slice(0, -6)}.${text.slice(-6)}`.replace(/\.?0+$/, "");
}

/** Dollars with up to six decimals, as text. The typed value is sent exactly. */
export function DollarsField(props: {
  label: string;
  hint?: ComponentChildren;
  value: string;
  onValue(value: string): void;
  required?: boolean;
  disabled?: boolean;
}) {
  return <TextField type="number" min="0" step="0.000001" {...props} />;
}
