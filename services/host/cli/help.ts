import type { Command } from "commander";

/** Ends a command's help with calls that work as they stand (but for the ids). */
export function withExamples(command: Command, ...calls: string[]): Command {
  const lines = calls.map((call) => `\n  $ npx genmesh ${call}`);
  return command.addHelpText("after", `\nExamples:${lines.join("")}`);
}
