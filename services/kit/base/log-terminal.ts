import type { DestinationStream } from "pino";
import pretty from "pino-pretty";

/** How people read a log. */
export interface TerminalOptions {
  /** Levels in colours. */
  colours: boolean;
}

/** Makes of a JSON line of the log a short one, by the clock of this place: `[14:05:57] INFO: stopping {"signal":"SIGTERM"}`. */
export function terminalLines({ colours }: TerminalOptions): (line: string) => string {
  return pretty.prettyFactory({
    colorize: colours,
    translateTime: "SYS:HH:MM:ss",
    // What a line says stays one line, but for the stack of an error.
    singleLine: true,
  });
}

/** Standard error where it is a terminal: each line at once, so that what follows on standard output comes after it. */
export function openTerminal(options: TerminalOptions): DestinationStream {
  const shortened = terminalLines(options);
  return { write: (line) => void process.stderr.write(shortened(line)) };
}
