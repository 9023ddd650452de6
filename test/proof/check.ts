import { type Command, runCommand } from "./processes.ts";
import type { FirstRun } from "./suite.ts";

/** A command that succeeds where it ends with code 0, and otherwise fails. */
export interface Check {
  name: string;
  command: Command;
  /** After this time it is stopped and has failed. */
  limitSeconds: number;
}

export async function runCheck(
  { name, command, limitSeconds }: Check,
  say: (line: string) => void,
): Promise<FirstRun> {
  const { code, tail } = await runCommand(command, { limitSeconds, say });
  // A failed command would fail the second time too.
  const tryAgain = async () => {};
  if (code === 0) {
    return { result: { passed: 1, skipped: 0, red: [], secondTries: [] }, tryAgain };
  }
  const title = code === undefined ? `stopped after ${limitSeconds} s` : `ended with ${code}`;
  const red = [{ part: name, name: title, place: "", message: tail }];
  return { result: { passed: 0, skipped: 0, red, secondTries: [] }, tryAgain };
}
