// Makes spans and times of internal calls, and carries the trace from one service to the next.

import { performance } from "node:perf_hooks";
import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { context, propagation, ROOT_CONTEXT, type Span, trace } from "@opentelemetry/api";
import { memo } from "#kit/base/memo.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { type Stage, staged } from "#kit/stream/stages.ts";
import { codeName } from "./codes.ts";
import { type Attributes, endSpan, failSpan, isTraced, runIn, startSpan } from "./spans.ts";

/** Gives each call within a trace a span, and carries the trace to the called service. */
export const rpcClientTelemetry: Interceptor = (next) => (req) => {
  // Watches and sweeps belong to no request.
  if (!trace.getActiveSpan()) return next(req);
  if (isTraced()) return tracedCall(next, req);
  propagation.inject(context.active(), req.header, headerSetter);
  return next(req);
};

const headerSetter = {
  set: (header: Headers, name: string, value: string) => header.set(name, value),
};

type Call = ReturnType<Interceptor>;

async function tracedCall(next: Call, req: Parameters<Call>[0]): ReturnType<Call> {
  const method = nameOf(req.method);
  const span = startSpan({
    family: "rpc.client",
    name: method,
    attributes: { "rpc.system.name": "connectrpc", "rpc.method": method },
  });
  const over = (error: unknown) => end(span, error === undefined ? undefined : codeOf(error));
  try {
    const res = await runIn(span, () => {
      propagation.inject(context.active(), req.header, headerSetter);
      return next(req);
    });
    if (!res.stream) {
      over(undefined);
      return res;
    }
    // A client's stream does not show that its reader has left. The call's signal does.
    req.signal.addEventListener("abort", () => over(req.signal.reason), { once: true });
    // The other side makes the spans for its own work.
    return { ...res, message: followed(res.message, undefined, over) };
  } catch (error) {
    over(error);
    throw error;
  }
}

/**
 * Times every call, streams to their end. Gives calls that come as part of a trace a span. It must be the outermost interceptor, so
 * that it sees the caller's answer.
 */
export function rpcServerTelemetry({ metrics }: { metrics: Metrics }): Interceptor {
  const duration = durationOf(metrics);
  return (next) => async (req) => {
    const begunMs = performance.now();
    const method = nameOf(req.method);
    const system = systemOf(req.header);
    const caller = propagation.extract(ROOT_CONTEXT, req.header, headerGetter);
    const span = trace.getSpan(caller) && startSpan(specOf(system, method), caller);
    let isOver = false;
    const over = (error: unknown) => {
      if (isOver) return;
      isOver = true;
      const code = error === undefined ? "ok" : codeOf(error);
      duration.of(system, method, code).observe((performance.now() - begunMs) / 1_000);
      if (span) end(span, error === undefined ? undefined : code);
    };
    const inside = span && trace.setSpan(caller, span);
    const enter = inside && (<T>(work: () => T): T => context.with(inside, work));
    try {
      const res = await (enter ? enter(() => next(req)) : next(req));
      if (res.stream) return { ...res, message: followed(res.message, enter, over) };
      over(undefined);
      return res;
    } catch (error) {
      over(error);
      throw error;
    }
  };
}

const headerGetter = {
  keys: (header: Headers) => [...header.keys()],
  get: (header: Headers, name: string) => header.get(name) ?? undefined,
};

const nameOf = memo((method: DescMethod) => `${method.parent.typeName}/${method.name}`);

function specOf(system: string, method: string) {
  const attributes = { "rpc.system.name": system, "rpc.method": method };
  return { family: "rpc.server", name: method, attributes } as const;
}

/** `source`, with each step run within `enter`. `over` is called once: at its end, with its error, or when its reader leaves. */
function followed<T>(
  source: AsyncIterable<T>,
  enter: Stage<T>["enter"],
  over: (error: unknown) => void,
): AsyncIterable<T> {
  return staged(source, {
    end: () => over(undefined),
    fail(error) {
      over(error);
      return error;
    },
    leave: () => over(undefined),
    ...(enter ? { enter } : {}),
  });
}

/** Ends a call's span. */
function end(span: Span, code: string | undefined): void {
  if (span.isRecording() && code !== undefined) {
    span.setAttributes({ "rpc.response.status_code": code } satisfies Attributes);
    failSpan(span, code);
  }
  endSpan(span);
}

/** The name of the code with which a call ended. */
function codeOf(error: unknown): string {
  return codeName(ConnectError.from(error).code);
}

function systemOf(header: Headers): "grpc" | "connectrpc" {
  return header.get("content-type")?.startsWith("application/grpc") ? "grpc" : "connectrpc";
}

function durationOf(metrics: Metrics) {
  return metrics.histogram(
    "genmesh_rpc_server_duration_seconds",
    "Internal calls by method and outcome, streams to their end. Not those of text requests within one process.",
    ["system", "method", "code"],
  );
}
