import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { createMetrics } from "./metrics.ts";

/** Seconds: at a bound, between two, below the first, above the last, and with a sum that is not exact. */
const seconds = [0.1, 0.3, 0, 7, 0.1, 0.2, 5];
const bounds = [0.1, 0.5, 5];
/** Labels are exported as they are; these have each character that Prometheus' text writes differently. */
const strange = 'a "quoted\\ \n name';

/** Metrics of each kind, with and without labels, some of them without an event. */
function ours() {
  const metrics = createMetrics();
  const requests = metrics.counter("requests_total", "Requests.\nBy end.", ["operation", "end"]);
  const plain = metrics.counter("plain_total", "Without labels.", []);
  metrics.counter("none_total", "Without an event.", ["end"]);
  const active = metrics.gauge("active", "Under way.", ["provider"]);
  const held = metrics.gauge("held_bytes", "Held.", []);
  const took = metrics.histogram("took_seconds", "Time.", ["method", "code"], bounds);
  const bare = metrics.histogram("bare_seconds", "Time without labels.", [], bounds);
  metrics.histogram("quiet_seconds", "Without an event.", ["code"]);
  return {
    metrics,
    text: () => metrics.text(),
    read: () => metrics.read(),
    count(operation: string, end: string, by: number) {
      requests.of(operation, end).value += by;
    },
    one() {
      plain.of().value++;
    },
    enter(provider: string, by: number) {
      active.of(provider).value += by;
    },
    hold(bytes: number) {
      held.of().value = bytes;
    },
    take(method: string, code: string, value: number) {
      took.of(method, code).observe(value);
    },
    takeBare: (value: number) => bare.of().observe(value),
  };
}

/** The same metrics, kept by Prometheus' client. */
function theirs(): Omit<ReturnType<typeof ours>, "metrics"> {
  const registry = new Registry();
  const of = (name: string, help: string, labelNames: string[]) => {
    return { name, help, labelNames, registers: [registry] };
  };
  const requests = new Counter(of("requests_total", "Requests.\nBy end.", ["operation", "end"]));
  const plain = new Counter(of("plain_total", "Without labels.", []));
  new Counter(of("none_total", "Without an event.", ["end"]));
  const active = new Gauge(of("active", "Under way.", ["provider"]));
  const held = new Gauge(of("held_bytes", "Held.", []));
  const buckets = bounds;
  const took = new Histogram({ ...of("took_seconds", "Time.", ["method", "code"]), buckets });
  const bare = new Histogram({ ...of("bare_seconds", "Time without labels.", []), buckets });
  new Histogram(of("quiet_seconds", "Without an event.", ["code"]));
  return {
    text: () => registry.metrics(),
    read: async () => (await registry.getMetricsAsJSON()) as never,
    count: (operation, end, by) => requests.inc({ operation, end }, by),
    one: () => plain.inc(),
    enter: (provider, by) => active.inc({ provider }, by),
    hold: (bytes) => held.set(bytes),
    take: (method, code, value) => took.observe({ method, code }, value),
    takeBare: (value) => bare.observe(value),
  };
}

function events(on: Omit<ReturnType<typeof ours>, "metrics">): void {
  on.count("responses", "failed", 2);
  on.count("chat", "completed", 1);
  on.count("responses", "completed", 0);
  on.count("responses", "failed", 0.5);
  on.count("chat completed", "", 1);
  on.count("chat", strange, 3_000_000_000);
  on.one();
  on.enter("up-2", 1);
  on.enter("up-1", 1);
  on.enter("up-2", -1);
  on.hold(4_096);
  for (const value of seconds) {
    on.take("POST", "200", value);
    on.take("GET", strange, value * 3);
    on.takeBare(value);
  }
}

describe("figures", () => {
  test("are exported by the byte as Prometheus' client exports its own", async () => {
    const [mine, other] = [ours(), theirs()];
    expect(await mine.text()).toBe(await other.text());
    events(mine);
    events(other);
    const text = await mine.text();
    expect(text).toBe(await other.text());
    expect(text).toContain('took_seconds_bucket{le="0.5",method="POST",code="200"} 5\n');
    expect(text).toContain('requests_total{operation="responses",end="completed"} 0\n');
  });

  test("are read as those of Prometheus' client are", async () => {
    const [mine, other] = [ours(), theirs()];
    events(mine);
    events(other);
    const known = (await other.read()).map(({ name, help, type, values }) => ({
      ...{ name, help, type },
      values: values.map(({ labels, value, metricName }) => ({
        ...{ labels, value },
        ...(metricName === undefined ? {} : { metricName }),
      })),
    }));
    expect(await mine.read()).toEqual(known);
    expect(await mine.metrics.readOne("took_seconds")).toEqual(
      known.find(({ name }) => name === "took_seconds"),
    );
  });

  test("a figure is the same for the same values, and another for others", () => {
    const figures = createMetrics().counter("things_total", "Things.", ["a", "b"]);
    expect(figures.of("x", "y")).toBe(figures.of("x", "y"));
    const all = [
      figures.of("x", "y"),
      figures.of("y", "x"),
      figures.of("x y", ""),
      figures.of("x", ""),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  test("that were forgotten are exported no longer", async () => {
    const metrics = createMetrics();
    const info = metrics.gauge("info", "The version in force.", ["version"]);
    info.of("1").value = 1;
    info.reset();
    info.of("2").value = 1;
    const bare = metrics.counter("bare_total", "Without labels.", []);
    bare.of().value++;
    bare.reset();
    const text = await metrics.text();
    expect(text).toContain('info{version="2"} 1\n');
    expect(text).not.toContain('version="1"');
    expect(text).toContain("bare_total 0\n");
  });

  test("of a histogram take no value that is no number", async () => {
    const metrics = createMetrics();
    const spread = metrics.histogram("took_seconds", "Time.", []).of();
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => spread.observe(value)).toThrow(TypeError);
    }
    expect(await metrics.text()).toContain("took_seconds_count 0\n");
  });

  test("two metrics of one name are refused", () => {
    const metrics = createMetrics();
    metrics.counter("things_total", "Things.", []);
    expect(() => metrics.gauge("things_total", "Things.", [])).toThrow(/already been registered/);
  });
});
