// Shortens the log's lines for people who read them in a terminal. Apart from `logger.ts`, because its library is loaded only
// there.

import type { DestinationStream } from "pino";
import pretty from "pino-pretty";

/** Options for a log that people read. */
export interface TerminalOptions {
  /** Shows levels in colours. */
  colours: boolean;
}

/** Makes a short line of a JSON line of the log, with the local time: `[14:05:57] INFO: stopping {"signal":"SIGTERM"}`. */
export function terminalLines({ colours }: TerminalOptions): (line: string) => string {
  return pretty.prettyFactory({
    colorize: colours,
    translateTime: "SYS:HH:MM:ss",
    // Keeps a message on one line. Only the stack of an error takes more.
    singleLine: true,
  });
}

/**
 * Standard error where it is a terminal. Each line is written at once, so that later output on standard output comes after it.
 */
export function openTerminal(options: TerminalOptions): DestinationStream {
  const shortened = terminalLines(options);
  return { write: (line) => void process.stderr.write(shortened(line)) };
}
