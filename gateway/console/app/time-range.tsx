// The filter of lists by a range of time, kept in the address.

import { useMemo, useState } from "preact/hooks";
import { localZone } from "./format.ts";
import { useFilters } from "./hooks.ts";
import { Select, TextField } from "./kit/form.tsx";

/** Ranges that end now, by their names in the address, with their lengths in seconds. */
const lengths: Readonly<Record<string, number>> = {
  "1h": 3_600,
  "1d": 86_400,
  "7d": 7 * 86_400,
  "30d": 30 * 86_400,
};
const custom = "custom";
const choices = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "1d", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
  { value: custom, label: "Custom" },
];
/** The API takes seconds of up to eleven digits. */
const maxSeconds = 99_999_999_999;

/** The change of the address that removes its range. */
export const noRange = { range: undefined, from: undefined, to: undefined };

/** The range of the address, as a list's query takes it. A range that ends now begins where it did when it was chosen. */
export function useTimeRange(): { start_time?: number | undefined; end_time?: number | undefined } {
  const { range = "", from, to } = useFilters().query;
  return useMemo(() => {
    if (range === custom) return { start_time: secondsOf(from), end_time: secondsOf(to) };
    const length = lengths[range];
    return length === undefined ? {} : { start_time: Math.floor(Date.now() / 1_000) - length };
  }, [range, from, to]);
}

/** Chooses the range of a list. `label` says which time of an item counts. */
export function RangeFilter({ label }: { label: string }) {
  const { query, set } = useFilters();
  const { range = "", from, to } = query;
  return (
    <>
      <Select
        label={label}
        value={range}
        onValue={(value) => set({ ...noRange, range: value })}
        choices={choices}
      />
      {range === custom && (
        <>
          <TimeField label="From" seconds={from} onSeconds={(value) => set({ from: value })} />
          <TimeField label="Before" seconds={to} onSeconds={(value) => set({ to: value })} />
        </>
      )}
    </>
  );
}

/** A moment in the reader's time zone. The address has it in seconds, so that a reader elsewhere sees the same list. */
function TimeField({
  label,
  seconds,
  onSeconds,
}: {
  label: string;
  seconds: string | undefined;
  onSeconds(seconds: string | undefined): void;
}) {
  // While a year is typed, its first digits are a year too. The address gets no such time, and the field keeps it.
  const [typed, setTyped] = useState("");
  const known = secondsOf(seconds);
  return (
    <TextField
      label={`${label} (${localZone})`}
      type="datetime-local"
      max="5138-01-01T00:00"
      value={secondsIn(typed) === known ? typed : localText(known)}
      onValue={(text) => {
        setTyped(text);
        const value = secondsIn(text);
        if (value !== known) onSeconds(value === undefined ? undefined : String(value));
      }}
    />
  );
}

function secondsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,11}$/.test(text) ? Number(text) : undefined;
}

/** Seconds of a value of a field, such as `2026-11-30T08:00`. Undefined where it is no time that the API takes. */
function secondsIn(text: string): number | undefined {
  const seconds = Math.floor(new Date(text).getTime() / 1_000);
  return seconds >= 0 && seconds <= maxSeconds ? seconds : undefined;
}

function localText(seconds: number | undefined): string {
  if (seconds === undefined) return "";
  const at = new Date(seconds * 1_000);
  const utc = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return utc.toISOString().slice(0, 16);
}
