// Shows single values in one form everywhere: money, counts, times, states.

import type { ComponentChildren } from "preact";
import {
  count,
  countShort,
  type Sum,
  type TimeStyle,
  time,
  timeTitle,
  usd,
  usdExact,
  usdPrice,
  usdTitle,
} from "../format.ts";
import { meaningOf, type StatusOf } from "../statuses.ts";
import { Explained } from "./explained.tsx";

/** Dollars, in cents or as `digits` names. The title always has the exact figure. */
export function Money({
  micros,
  digits = "cents",
}: {
  micros: Sum;
  /** `all` shows six digits, for columns. `price` shows as many as the figure has. */
  digits?: "cents" | "all" | "price";
}) {
  const text = { cents: usd, all: usdExact, price: usdPrice }[digits](micros);
  return (
    <data class="num" value={micros} title={usdTitle(micros)}>
      {text}
    </data>
  );
}

export function Credits({ value }: { value: Sum }) {
  return (
    <data class="num" value={value} title={`${count(value)} credits`}>
      {count(value)}
    </data>
  );
}

/** A number that may be shown short. The title has the whole figure. */
export function Count({ value, short }: { value: number; short?: boolean }) {
  return (
    <data class="num" value={value} title={count(value)}>
      {short ? countShort(value) : count(value)}
    </data>
  );
}

export function When({
  at,
  style = "minute",
  never = "never",
}: {
  at: string | number | null | undefined;
  style?: TimeStyle;
  never?: string;
}) {
  if (at === null || at === undefined) return <span class="muted">{never}</span>;
  // Numbers are seconds since 1970, as in OpenAI's objects.
  const date = new Date(typeof at === "number" ? at * 1_000 : at);
  return (
    <time class="num" dateTime={date.toISOString()} title={timeTitle(date, style)}>
      {time(date, style)}
    </time>
  );
}

export type Tone = "plain" | "good" | "warn" | "bad" | "live";

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

const tones: Record<string, Tone> = {
  completed: "good",
  delivered: "good",
  active: "good",
  failed: "bad",
  error: "bad",
  revoked: "bad",
  closed: "bad",
  closing: "warn",
  expired: "warn",
  stopped: "warn",
  lost: "bad",
  left: "warn",
  cancelled: "plain",
  incomplete: "warn",
  suspended: "warn",
  disabled: "warn",
  running: "live",
  in_progress: "live",
  pending: "live",
  this_session: "live",
  healthy: "good",
  failing: "bad",
  account_empty: "bad",
  done: "good",
  refused: "bad",
  started: "warn",
};

/** A status with its name in the API, and its meaning. */
export function Status({
  of,
  value,
  isToldBeside,
}: {
  of: StatusOf;
  value: string;
  /** The meaning stands beside the status, which is therefore not explained again. */
  isToldBeside?: boolean;
}) {
  return (
    <Explained meaning={isToldBeside ? undefined : meaningOf(of, value)}>
      <Badge tone={tones[value] ?? "plain"}>{value.replaceAll("_", " ")}</Badge>
    </Explained>
  );
}

/** A status as a word of a text. */
export function StatusWord({ of, value }: { of: StatusOf; value: string }) {
  return <Explained meaning={meaningOf(of, value)}>{value}</Explained>;
}

/** The beginning of an id, which tells its kind, and its end. The title has the whole id. */
export function ShortId({ id }: { id: string }) {
  const kind = id.slice(0, id.search(/[_-]/) + 1);
  return (
    <code class="num" title={id}>
      {id.length <= kind.length + 9 ? id : `${kind}…${id.slice(-8)}`}
    </code>
  );
}

/** A longer id may break, so that its table keeps its width. */
const mostKeptLength = 24;

/** The id of a model on one line, where its hyphens would break it. */
export function ModelId({ id }: { id: string }) {
  return <span class={id.length <= mostKeptLength ? "keep" : undefined}>{id}</span>;
}

/** An identifier in a fixed pitch, complete, and selected by one click. */
export function Id({ children }: { children: string }) {
  return <code class="id">{children}</code>;
}

/** A name and its value, in a `dl` of the class "facts". */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
