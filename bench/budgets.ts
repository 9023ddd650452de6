// The most that a text request may take on its way, in one process, one request at a time. `npm run bench:path` counts it, and
// `test/bench/budgets.test.ts` compares. The figures are the counts of today.

/** A count that may not rise. */
export interface Budget {
  /** The name of its row in the table of `npm run bench:path`. */
  name: string;
  most: number;
  unit: string;
  /** The share of `most` by which a count may be above it, because two runs of the same code differ. */
  spare: number;
  /** The harm that more of it does. */
  reason: string;
  /** The place where a rise is found. */
  look: string;
}

/** A kind of figure, with that in which all its budgets agree. */
type Measure = Omit<Budget, "name" | "most">;

const list = "npm run bench:path -- --list";
const exact = { spare: 0 };

const measures = {
  files: {
    ...exact,
    unit: "files of the product",
    reason: "a reader who follows a request opens each of them",
    look: `the files in \`${list}\`, here and on the commit before`,
  },
  functions: {
    // A busy machine takes another branch once in a while.
    spare: 0.01,
    unit: "functions of the product",
    reason:
      "a reader follows each of them, and the profile is flat: the number of steps is the cost",
    look: `the functions in \`${list}\`, here and on the commit before`,
  },
  calls: {
    // Making an id takes a call more for each random byte that fits no letter.
    spare: 0.01,
    unit: "calls of the product's functions",
    reason: "each costs time, however short the function is",
    look: `the numbers in \`${list}\`, here and on the commit before`,
  },
  promises: {
    // A wait that nothing shares is a promise less.
    spare: 0.02,
    unit: "promises of all code",
    reason: "each takes turns of the microtask queue, and keeps its closures until it is settled",
    look: "functions that became async, and each new await, race or signal on the way",
  },
  bytes: {
    // V8 compiles at other moments in each run, and compiled code makes fewer objects.
    spare: 0.1,
    unit: "bytes on V8's heap",
    reason: "all of them are collected again, which takes a seventh of a request's time",
    look: "copies, closures, spreads and buffers' texts on the way; `node --heap-prof` names the places",
  },
  "SQL statements": {
    ...exact,
    unit: "statements, with those that begin and end a transaction",
    reason: "SQLite takes a fifth of a request's time, on the event loop that all requests share",
    look: "the stores that a request writes to: `services/billing/ledger/store-sqlite*.ts` first",
  },
  AbortControllers: {
    ...exact,
    unit: "controllers of all code",
    reason: "each has a signal with its own table of listeners",
    look: "new signals, deadlines and races on the way",
  },
  timers: {
    // One more where the machine is slow.
    spare: 0.25,
    unit: "timers and sleeps",
    reason: "each is put into a list and taken out again, for a time that nearly never comes",
    look: "new deadlines, pauses and watches on the way",
  },
  "Sets and Maps": {
    // One more where the machine is slow.
    spare: 0.1,
    unit: "sets and maps of all code",
    reason: "an empty one takes some 200 bytes, and most hold one thing or nothing",
    look: "collections that are made for each request",
  },
} satisfies Record<string, Measure>;

type MeasureName = keyof typeof measures;

/** To lower or to raise a budget, change its number here. A rise is in the commit that causes it, with the reason in its message. */
const most: Record<string, Partial<Record<MeasureName, number>>> = {
  "a request for JSON": {
    files: 128,
    functions: 530,
    calls: 847,
    promises: 30,
    bytes: 103_000,
    "SQL statements": 10,
    AbortControllers: 0,
    timers: 3,
    "Sets and Maps": 2,
  },
  "a stream of 100 deltas": {
    files: 147,
    functions: 725,
    calls: 7_680,
    promises: 34,
    bytes: 402_000,
    "SQL statements": 10,
    AbortControllers: 0,
    timers: 3,
    "Sets and Maps": 10,
  },
  "a delta": { files: 26, functions: 56, calls: 60, promises: 0, bytes: 2_570 },
};

/** Steps that wait for the disk or for another service. `services/text/leases.test.ts` pins their order. */
const steps: readonly Budget[] = [
  ["durable writes before a request is sent", 1] as const,
  ["calls of billing before a request is sent", 1] as const,
  ["durable writes at its end", 1] as const,
  ["calls of billing at its end", 1] as const,
].map(([name, count]) => ({
  ...exact,
  name,
  most: count,
  unit: "steps",
  reason: "on a mesh each is a round trip for which the caller waits",
  look: "`services/text/leases.test.ts`, which names the steps",
}));

/** All budgets, in the order of the table that `npm run bench:path` prints. */
export const budgets: readonly Budget[] = [
  ...Object.entries(most).flatMap(([way, figures]) =>
    Object.entries(figures).map(([measure, count]) => ({
      ...measures[measure as MeasureName],
      name: `${way}: ${measure}`,
      most: count,
    })),
  ),
  ...steps,
];

/** The most that may be counted, with the spare of the budget. */
export const highest = ({ most, spare }: Budget) => Math.floor(most * (1 + spare));

/** A sentence for each budget that is exceeded, or that was not counted. */
export function exceeded(counts: ReadonlyMap<string, number>): string[] {
  return budgets.flatMap((budget) => {
    const { name, most, unit, spare, reason, look } = budget;
    const count = counts.get(name);
    if (count === undefined) return [`${name}: was not counted`];
    if (count <= highest(budget)) return [];
    const allowed = spare > 0 ? `, above the ${spare * 100} % that may vary` : "";
    return [
      `${name}: ${count} ${unit}, ${count - most} more than ${most}${allowed}. It matters: ${reason}. Look at ${look}.`,
    ];
  });
}
