import { parseArgs } from "node:util";
import { type LineName, lines } from "./lines.ts";

/** What the bench is told by its words. */
export interface BenchOptions {
  /** Of each run. */
  seconds: number;
  rounds: number;
  only: ReadonlySet<LineName | "starts">;
  /** Which of genmesh's forms are measured. */
  forms: ReadonlySet<"one" | "mesh">;
  profileFolder: string | undefined;
}

const names = ["starts", ...Object.keys(lines)] as (LineName | "starts")[];
const forms = ["one", "mesh"] as const;

/** How it is used. */
export const usage = `npm run bench [-- options]: genmesh in one process and as a mesh, beside Portkey's gateway

  --seconds N       seconds of each run (default 2)
  --rounds N        runs of each of them in each line, in turn (default 3)
  --only WORDS      comma-separated, of: ${[...names, ...forms].join(", ")}
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
  return {
    seconds,
    rounds,
    only: chosen(names, words),
    forms: chosen(forms, words),
    profileFolder: values.profile,
  };
}

/** Those that were named, or all of them where none was. */
function chosen<T extends string>(all: readonly T[], words: readonly string[]): ReadonlySet<T> {
  const named = all.filter((one) => words.includes(one));
  return new Set(named.length > 0 ? named : all);
}
