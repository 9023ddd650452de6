import { type Command, runCommand } from "./processes.ts";
import type { Result } from "./suite.ts";

/** A command that is green where it ends with code 0, and red else. */
export interface Check {
  name: string;
  command: Command;
  /** Longer, and it is stopped and red. */
  limitSeconds: number;
}

export async function runCheck(
  { name, command, limitSeconds }: Check,
  say: (line: string) => void,
): Promise<Result> {
  const { code, tail } = await runCommand(command, { limitSeconds, say });
  if (code === 0) return { passed: 1, skipped: 0, red: [], secondTries: [] };
  const title = code === undefined ? `stopped after ${limitSeconds} s` : `ended with ${code}`;
  const red = [{ part: name, name: title, place: "", message: tail }];
  return { passed: 0, skipped: 0, red, secondTries: [] };
}
