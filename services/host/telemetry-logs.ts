// Sends lines of the log to a collector. Loaded only where one is configured for logs.

import { type Attributes, logs } from "@opentelemetry/api";

/** Pino's numbers of levels are 10 for `trace`, 20 for `debug`, and so on. OTLP's begin at 1 and have four for each level. */
const severityOf = (level: number) => (level / 10 - 1) * 4 + 1;

/**
 * Gives a line of the log to a collector too, within the trace in which it was written. Returns the line. Where telemetry has not
 * started, or has ended, nothing is sent.
 */
export function forwardLine(line: string): string {
  const { level, time, msg, trace_id: _, span_id: __, ...attributes } = JSON.parse(line);
  logs.getLogger("genmesh").emit({
    timestamp: Date.parse(time),
    severityNumber: severityOf(level),
    body: msg,
    attributes: attributes as Attributes,
  });
  return line;
}
