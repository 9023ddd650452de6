// Reads a time that a caller or an operator wrote.

/**
 * A day, with or without a time. The seconds may be left out. A time names its zone, so that every reader understands the same
 * moment.
 */
const form = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** The end of year 9999. Later times have another form in ISO 8601, and none in protobuf. */
const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Milliseconds since 1970 of a time in ISO 8601. A day alone begins at midnight UTC. Undefined for everything else. `Date.parse`
 * takes too much: "1" as a year, a time without a zone as local, and 30 February as a day in March.
 */
export function isoMs(text: string): number | undefined {
  const day = form.exec(text)?.[1];
  if (day === undefined || !isDay(day)) return undefined;
  const ms = Date.parse(text);
  return ms >= 0 && ms <= lastMs ? ms : undefined;
}

function isDay(day: string): boolean {
  const ms = Date.parse(day);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}
