import { ConnectError } from "@connectrpc/connect";
import { isRefusal, reasonName } from "../errors.ts";
import { codeName } from "./codes.ts";
import { noSpan, type Span, type SpanSpec, type Telemetry } from "./port.ts";

/** Runs `work` inside a span of its own, where the running code is part of a trace that is recorded. */
export function traced<T>(
  telemetry: Telemetry,
  spec: SpanSpec,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  // Most are not: then nothing stands between the work and whoever waits for it, not even a promise.
  return telemetry.active()?.isRecording ? recorded(telemetry, spec, work) : work(noSpan);
}

async function recorded<T>(
  telemetry: Telemetry,
  spec: SpanSpec,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = telemetry.start(spec);
  try {
    return await telemetry.run(span, () => work(span));
  } catch (error) {
    span.fail(errorType(error));
    throw error;
  } finally {
    span.end();
  }
}

/** A class of errors, in a word that holds nothing of what was said. */
export function errorType(error: unknown): string {
  if (isRefusal(error)) return reasonName(error.reason);
  if (error instanceof ConnectError) return codeName(error.code);
  return error instanceof Error && classPattern.test(error.name) ? error.name : "_OTHER";
}

const classPattern = /^[A-Z][A-Za-z]{0,63}$/;
