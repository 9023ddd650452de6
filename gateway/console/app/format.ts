// Money, numbers and times in the reader's locale. The exact figure is always in the title.

const dollars = (digits: number, least = digits) =>
  new Intl.NumberFormat(undefined, {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: least,
    maximumFractionDigits: digits,
  });
const inCents = dollars(2);
const inMicros = dollars(6);
const toTheMicro = dollars(6, 2);
const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** A sum of the API. It comes as decimal digits where a number cannot hold it exactly. */
export type Sum = number | string;

/** Millionths of a dollar as an exact decimal, without rounding, however large. */
function decimalOf(micros: Sum): `${number}` {
  const value = BigInt(micros);
  const size = value < 0n ? -value : value;
  const fraction = String(size % 1_000_000n).padStart(6, "0");
  return `${value < 0n ? "-" : ""}${size / 1_000_000n}.${fraction}` as `${number}`;
}

/** For reading: cents, or millionths for sums below a cent. */
export function usd(micros: Sum): string {
  const isSmall = Math.abs(Number(micros)) < 10_000;
  return (isSmall ? toTheMicro : inCents).format(decimalOf(micros));
}

/** All six digits, for columns of figures. */
export function usdExact(micros: Sum): string {
  return inMicros.format(decimalOf(micros));
}

/** A price with all its digits, because rounding would change the price. */
export function usdPrice(micros: Sum): string {
  return toTheMicro.format(decimalOf(micros));
}

/** Sums of an axis, all with as many digits as the finest of them has: no two become one by rounding. */
export function usdTicks(micros: readonly number[]): string[] {
  const digits = [2, 3, 4, 5].find((count) =>
    micros.every((sum) => Math.round(sum) % 10 ** (6 - count) === 0),
  );
  const { format } = dollars(digits ?? 6);
  return micros.map((sum) => format(sum / 1_000_000));
}

export function usdTitle(micros: Sum): string {
  return `${toTheMicro.format(decimalOf(micros))} = ${whole.format(BigInt(micros))} millionths of a US dollar`;
}

export function count(value: Sum): string {
  return whole.format(typeof value === "string" ? BigInt(value) : value);
}

/** 12.3K, for narrow places. The whole figure belongs in the title. */
export function countShort(value: number): string {
  return value < 10_000 ? whole.format(value) : short.format(value);
}

const dateTime = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const dateTimeSeconds = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const longDateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const longDateTimeUtc = new Intl.DateTimeFormat(undefined, {
  dateStyle: "full",
  timeStyle: "long",
  timeZone: "UTC",
});
const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const dateUtc = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
/** The reader's time zone, such as GMT+1. Times without another label are in it. */
export const localZone: string =
  new Intl.DateTimeFormat(undefined, { timeZoneName: "short" })
    .formatToParts(new Date())
    .find(({ type }) => type === "timeZoneName")?.value ?? "local";
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** `utcDay` is a day that the reader typed. Forms take it as a day of UTC, so the reader's own time zone must not shift it. */
export type TimeStyle = "minute" | "second" | "day" | "utcDay" | "ago";

export function time(at: Date, style: TimeStyle): string {
  if (style === "day") return date.format(at);
  if (style === "utcDay") return `${dateUtc.format(at)} (UTC)`;
  if (style === "ago") return ago(at);
  return (style === "second" ? dateTimeSeconds : dateTime).format(at);
}

export function timeTitle(at: Date, style?: TimeStyle): string {
  const long = style === "utcDay" ? longDateTimeUtc : longDateTime;
  return `${long.format(at)} (${at.toISOString()})`;
}

const steps: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

function ago(at: Date): string {
  const seconds = (at.getTime() - Date.now()) / 1_000;
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return relative.format(0, "minute");
}

const fewBytes = new Intl.NumberFormat(undefined, {
  style: "unit",
  unit: "byte",
  unitDisplay: "long",
});
const oneDigit = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

/** Bytes in the units of the limits: a MiB is 1,024 KiB. */
export function bytes(value: number): string {
  const step = Math.min(3, Math.floor(Math.log2(Math.max(1, value)) / 10));
  const unit = ["KiB", "MiB", "GiB"][step - 1];
  return unit ? `${oneDigit.format(value / 1_024 ** step)} ${unit}` : fewBytes.format(value);
}

/** A part of 1. */
export const percent = new Intl.NumberFormat(undefined, {
  style: "percent",
  maximumFractionDigits: 1,
});

/** Milliseconds, seconds or minutes: the largest unit that gives at least two, or one second. */
export function milliseconds(value: number): string {
  const [unit, size] =
    value < 1_000
      ? (["millisecond", 1] as const)
      : value < 120_000
        ? (["second", 1_000] as const)
        : (["minute", 60_000] as const);
  return new Intl.NumberFormat(undefined, {
    style: "unit",
    unit,
    unitDisplay: "short",
    maximumFractionDigits: size === 1 ? 0 : 1,
  }).format(value / size);
}
