import { type DestinationStream, type Logger, pino } from "pino";

export type { Logger } from "pino";

/** Levels that `GENMESH_LOG_LEVEL` accepts. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * JSON lines on standard error (standard output carries only the ready line). `fields` are asked for at each line, and
 * stand in it.
 */
export function createLogger(
  level: LogLevel,
  stream: DestinationStream = pino.destination(2),
  fields?: () => object,
): Logger {
  const timestamp = pino.stdTimeFunctions.isoTime;
  return pino({ level, base: null, timestamp, ...(fields ? { mixin: fields } : {}) }, stream);
}
