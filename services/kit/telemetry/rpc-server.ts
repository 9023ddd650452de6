import { performance } from "node:perf_hooks";
import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { memo } from "../memo.ts";
import { childrenOf, type Metrics } from "../metrics.ts";
import { codeName } from "./codes.ts";
import { followed } from "./followed.ts";
import { noTelemetry, type Span, type Telemetry } from "./port.ts";

/** What calls are seen with. */
export interface RpcServerTelemetryDeps {
  metrics: Metrics;
  telemetry?: Telemetry;
}

/**
 * Times every call, streams to their end, and gives those that come as part of a trace a span. To stand outermost, so that
 * it sees what the caller is answered.
 */
export function rpcServerTelemetry(deps: RpcServerTelemetryDeps): Interceptor {
  const { telemetry = noTelemetry } = deps;
  const durationOf = durations(deps.metrics);
  const nameOf = memo((method: DescMethod) => `${method.parent.typeName}/${method.name}`);
  return (next) => async (req) => {
    const begunMs = performance.now();
    const method = nameOf(req.method);
    const system = systemOf(req.header);
    const span = telemetry.isOn
      ? telemetry.start(
          {
            family: "rpc.server",
            name: method,
            attributes: { "rpc.system.name": system, "rpc.method": method },
          },
          headersIn(req.header),
        )
      : undefined;
    let isOver = false;
    const over = (error: unknown) => {
      if (isOver) return;
      isOver = true;
      const code = error === undefined ? "ok" : codeOf(error);
      durationOf(system, method, code).observe((performance.now() - begunMs) / 1_000);
      if (span) close(span, error === undefined ? undefined : code);
    };
    const enter = span && (<T>(work: () => T): T => telemetry.run(span, work));
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

/** Ends a call's span. */
export function close(span: Span, code: string | undefined): void {
  if (code !== undefined) {
    span.set({ "rpc.response.status_code": code });
    span.fail(code);
  }
  span.end();
}

/** A code's name of what a call ended with. */
export function codeOf(error: unknown): string {
  return codeName(ConnectError.from(error).code);
}

function systemOf(header: Headers): "grpc" | "connectrpc" {
  return header.get("content-type")?.startsWith("application/grpc") ? "grpc" : "connectrpc";
}

function headersIn(header: Headers): { traceparent?: string; tracestate?: string } {
  const traceparent = header.get("traceparent");
  const tracestate = header.get("tracestate");
  return { ...(traceparent ? { traceparent } : {}), ...(tracestate ? { tracestate } : {}) };
}

function durations(metrics: Metrics) {
  return childrenOf(
    metrics.histogram(
      "genmesh_rpc_server_duration_seconds",
      "Internal calls by method and outcome, streams to their end.",
      ["system", "method", "code"],
    ),
  );
}
