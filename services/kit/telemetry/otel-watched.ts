import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { Logger } from "../logger.ts";

/** What sends one kind of data. */
interface Exporter<T> {
  export(data: T, done: (result: ExportResult) => void): void;
}

/** Tells the log when sending begins to fail, and when it works again. The SDK would say nothing. */
export function watchedExporter<T, E extends Exporter<T>>(
  exporter: E & Exporter<T>,
  signal: "traces" | "metrics",
  log: Logger,
): E {
  let isAway = false;
  const send = exporter.export.bind(exporter);
  exporter.export = (data, done) => {
    send(data, (result) => {
      const failed = result.code !== ExportResultCode.SUCCESS;
      if (failed && !isAway) log.warn({ signal, err: nameOf(result.error) }, "telemetry is lost");
      if (!failed && isAway) log.info({ signal }, "telemetry is taken again");
      isAway = failed;
      done(result);
    });
  };
  return exporter;
}

/** A class or a code: the text would name the collector's address. */
function nameOf(error: Error | undefined): string | undefined {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: string };
  return code === undefined ? name : `${name} ${String(code)}`;
}
