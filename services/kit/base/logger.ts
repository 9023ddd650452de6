// Makes the log of a process: JSON lines on standard error, written in pieces. `log-terminal.ts` shortens them for people.

import { type DestinationStream, type Logger, pino } from "pino";

export type { Logger } from "pino";

/** Levels that `GENMESH_LOG_LEVEL` accepts. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * JSON lines on standard error (standard output carries only the ready line). `fields` is called for each line, and its result is
 * part of the line. `forward` gets each line before it is written, and returns it.
 */
export function createLogger(
  level: LogLevel,
  stream: DestinationStream = standardError(),
  fields?: () => object,
  forward?: (line: string) => string,
): Logger {
  const timestamp = pino.stdTimeFunctions.isoTime;
  const more = {
    ...(fields ? { mixin: fields } : {}),
    ...(forward ? { hooks: { streamWrite: forward } } : {}),
  };
  return pino({ level, base: null, timestamp, ...more }, stream);
}

/** Characters of lines that are written together: a write for each line costs more than the line. */
const writeLength = 8 * 1024;
/** Pino's number of the level `error`. */
const errorLevel = 50;
/** The most milliseconds for which a line waits for others. A person who reads along does not notice. */
const maxWaitMs = 50;

/**
 * Standard error, written in pieces. A piece is written when it is long enough, after 50 ms, at once from an error on, or when
 * the process ends. A process that is killed loses the last 50 ms.
 */
function standardError(): DestinationStream {
  shared ??= openStandardError();
  return shared;
}

let shared: DestinationStream | undefined;

function openStandardError(): DestinationStream {
  // Pino's own buffer is not used: each flush waits for the disk, where the log is a file.
  const sink = pino.destination({ dest: 2, sync: true });
  let text = "";
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const lines = text;
    text = "";
    if (lines !== "") sink.write(lines);
  };
  process.on("exit", flush);
  return {
    // With this symbol pino passes the level of each line.
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 0,
    write(line: string) {
      text += line;
      if (this.lastLevel >= errorLevel || text.length >= writeLength) flush();
      else timer ??= setTimeout(flush, maxWaitMs).unref();
    },
  } as DestinationStream & { lastLevel: number };
}
