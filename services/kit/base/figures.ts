// Keeps the numbers behind the metrics of a process. `metrics.ts` declares metrics and exports them. Counting runs for every
// request, so it finds its number without making a name.

/** A metric with its values of this moment. */
export interface MetricReading {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram" | "summary";
  /** A histogram has the values of its series (`_bucket` with `le`, `_sum`, `_count`), which `metricName` tells apart. */
  values: {
    labels: Partial<Record<string, string | number>>;
    value: number;
    metricName?: string;
  }[];
}

type Labels = Readonly<Record<string, string>>;
type Values = MetricReading["values"];

/** A metric as it is declared. */
interface Declared<L extends readonly string[]> {
  name: string;
  help: string;
  type: MetricReading["type"];
  labels: L;
}

/** The part of a metric that counts under one set of label values. */
interface Figure {
  /** Its values of this moment, of the metric with this name. */
  values(name: string, labels: Labels): Values;
}

/** One number, of a counter or a gauge. Events change it in place. A counter's only grows. */
export class Count implements Figure {
  value = 0;

  values(_name: string, labels: Labels): Values {
    return [{ labels, value: this.value }];
  }
}

/** The spread of a histogram's values. */
export class Spread implements Figure {
  readonly #bounds: readonly number[];
  /** The number of values up to each bound and above the one before. The last is the number of those above all bounds. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    if (!Number.isFinite(value)) throw new TypeError(`no finite value: ${value}`);
    const bounds = this.#bounds;
    const counts = this.#counts;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    counts[at] = (counts[at] as number) + 1;
    this.#sum += value;
  }

  values(name: string, labels: Labels): Values {
    let count = 0;
    const buckets = [...this.#bounds, "+Inf"].map((le, at) => {
      count += this.#counts[at] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

/** A place in the tree of label values, with a level for each label. The places of the last level have the figures. */
interface Place<F> {
  next: Map<string, Place<F>>;
  figure?: F;
}

/**
 * The figures of a metric, one for each set of label values. They are numbers that events change. Prometheus' client reads them when it is
 * asked for all metrics. For labels with few values, because figures are kept.
 */
export class Figures<L extends readonly string[], F extends Figure> {
  readonly name: string;
  readonly #declared: Declared<L>;
  readonly #make: () => F;
  #root: Place<F> = { next: new Map() };
  /** In the order of their first events. */
  #all: { labels: Labels; figure: F }[] = [];

  constructor(declared: Declared<L>, make: () => F) {
    this.name = declared.name;
    this.#declared = declared;
    this.#make = make;
    this.reset();
  }

  /**
   * The figure for a value of each label, in their declared order. It is exported from then on. It is found by a look for each value,
   * because joining values to one name costs more than counting.
   */
  of(...values: { [At in keyof L]: string }): F {
    let place = this.#root;
    for (const value of values) place = place.next.get(value) ?? added(place, value);
    place.figure ??= this.#add(values);
    return place.figure;
  }

  /** Forgets all figures: those that were handed out are no longer exported. A metric without labels has one from the beginning. */
  reset(): void {
    this.#root = { next: new Map() };
    this.#all = [];
    if (this.#declared.labels.length === 0) this.#root.figure = this.#add([]);
  }

  /** Its values of this moment. */
  get(): MetricReading {
    const { name, help, type } = this.#declared;
    const values = this.#all.flatMap(({ labels, figure }) => figure.values(name, labels));
    return { name, help, type, values };
  }

  #add(values: readonly string[]): F {
    const named = this.#declared.labels.map((label, at) => [label, values[at] ?? ""]);
    const figure = this.#make();
    this.#all.push({ labels: Object.fromEntries(named), figure });
    return figure;
  }
}

function added<F>(place: Place<F>, value: string): Place<F> {
  const made: Place<F> = { next: new Map() };
  place.next.set(value, made);
  return made;
}
