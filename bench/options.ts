import { parseArgs } from "node:util";
import { growthSizes } from "./growth.ts";
import { type LineName, lines } from "./lines.ts";

/** The measurements: lines, and those with a program of their own. */
export type Measured = LineName | "starts" | "memory" | "growth" | "pages";

/** The options of the bench. */
export interface BenchOptions {
  /** For each run. */
  seconds: number;
  rounds: number;
  only: ReadonlySet<Measured>;
  /** The size of filled stores for `growth`. */
  growth: keyof typeof growthSizes;
  /** Entries of the large ledger for `pages`. Undefined: the number for the size. */
  entries: number | undefined;
  /** The forms of genmesh that are measured. */
  forms: ReadonlySet<"one" | "mesh">;
  profileFolder: string | undefined;
}

/** Measured where no name is given. */
const usual = ["starts", "memory", ...Object.keys(lines)] as Measured[];
const names = [...usual, "growth", "pages"] as Measured[];
const forms = ["one", "mesh"] as const;

/** The text of its help. */
export const usage = `npm run bench [-- options]: genmesh in one process and as a mesh, beside Portkey's gateway

  --seconds N       seconds of each run (default 2)
  --rounds N        runs of each of them in each line, in turn (default 3)
  --only WORDS      comma-separated, of: ${[...names, ...forms].join(", ")}
  --growth SIZE     of the stores that growth fills: ${Object.keys(growthSizes).join(" or ")} (default small)
  --entries N       of the ledger whose pages are measured, where not as SIZE says
  --profile FOLDER  writes CPU profiles of genmesh there, one for each process
`;

/** Reads the arguments. Undefined where help is requested. Throws where they are invalid. */
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

/** The named ones, or the usual ones without names. */
function chosen<T extends string>(
  all: readonly T[],
  words: readonly string[],
  usual = all,
): ReadonlySet<T> {
  const named = all.filter((one) => words.includes(one));
  return new Set(named.length > 0 ? named : usual);
}
