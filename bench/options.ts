import { parseArgs } from "node:util";
import { growthSizes } from "./growth.ts";
import { type LineName, lines } from "./lines.ts";

/** What can be measured: lines, and what has a course of its own. */
export type Measured = LineName | "starts" | "memory" | "growth" | "pages";

/** What the bench is told by its words. */
export interface BenchOptions {
  /** Of each run. */
  seconds: number;
  rounds: number;
  only: ReadonlySet<Measured>;
  /** How far stores are filled where `growth` is measured. */
  growth: keyof typeof growthSizes;
  /** Entries of the large ledger where `pages` are measured; undefined: as the size says. */
  entries: number | undefined;
  /** Which of genmesh's forms are measured. */
  forms: ReadonlySet<"one" | "mesh">;
  profileFolder: string | undefined;
}

/** Measured where nothing is named. */
const usual = ["starts", "memory", ...Object.keys(lines)] as Measured[];
const names = [...usual, "growth", "pages"] as Measured[];
const forms = ["one", "mesh"] as const;

/** How it is used. */
export const usage = `npm run bench [-- options]: genmesh in one process and as a mesh, beside Portkey's gateway

  --seconds N       seconds of each run (default 2)
  --rounds N        runs of each of them in each line, in turn (default 3)
  --only WORDS      comma-separated, of: ${[...names, ...forms].join(", ")}
  --growth SIZE     of the stores that growth fills: ${Object.keys(growthSizes).join(" or ")} (default small)
  --entries N       of the ledger whose pages are measured, where not as SIZE says
  --profile FOLDER  writes CPU profiles of genmesh there, one for each process
`;

/** Reads the words; undefined where help is asked for. Throws where they make no sense. */
export function readOptions(args: readonly string[]): BenchOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string", default: "2" },
      rounds: { type: "string", default: "3" },
      only: { type: "string" },
      growth: { type: "string", default: "small" },
      entries: { type: "string" },
      profile: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
  if (!(seconds > 0)) throw new Error("--seconds must be above 0");
  if (!(Number.isInteger(rounds) && rounds > 0)) throw new Error("--rounds must be 1 or more");
  const words = values.only?.split(",") ?? [];
  const unknown = words.find((word) => ![...names, ...forms].some((name) => name === word));
  if (unknown !== undefined) throw new Error(`--only does not know "${unknown}"`);
  const { growth } = values;
  if (growth !== "small" && growth !== "full") {
    throw new Error(`--growth does not know "${growth}"`);
  }
  const entries = values.entries === undefined ? undefined : Number(values.entries);
  if (entries !== undefined && !(Number.isInteger(entries) && entries > 0)) {
    throw new Error("--entries must be 1 or more");
  }
  return {
    seconds,
    growth,
    entries,
    rounds,
    only: chosen(names, words, usual),
    forms: chosen(forms, words),
    profileFolder: values.profile,
  };
}

/** Those that were named, or the usual ones where none was. */
function chosen<T extends string>(
  all: readonly T[],
  words: readonly string[],
  usual = all,
): ReadonlySet<T> {
  const named = all.filter((one) => words.includes(one));
  return new Set(named.length > 0 ? named : usual);
}
