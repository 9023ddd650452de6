import { localZone } from "../../format.ts";
import { TextField } from "../../kit/form.tsx";

/** Times as the reader types them, in their own zone. */
interface Times {
  from: string | undefined;
  before: string | undefined;
}

/** Filters of a list by a range of time. */
export function TimeFilters({
  onValues,
  ...times
}: Times & { onValues(change: Record<string, string>): void }) {
  return (
    <>
      {(["from", "before"] as const).map((name) => (
        <TextField
          key={name}
          label={`${name === "from" ? "From" : "Before"} (${localZone})`}
          type="datetime-local"
          value={times[name] ?? ""}
          onValue={(value) => onValues({ [name]: value })}
        />
      ))}
    </>
  );
}

/** The same as parameters of a request. */
export function timesOf({ from, before }: Times) {
  return { start_time: seconds(from), end_time: seconds(before) };
}

/** Seconds since 1970. */
function seconds(local: string | undefined): number | undefined {
  const ms = local ? Date.parse(local) : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1_000);
}
