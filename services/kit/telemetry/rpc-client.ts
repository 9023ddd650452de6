import type { Interceptor } from "@connectrpc/connect";
import { followed } from "./followed.ts";
import type { Telemetry } from "./port.ts";
import { close, codeOf } from "./rpc-server.ts";

/** Gives calls that are part of a trace a span, and takes the trace to the other side. None where nobody listens. */
export function rpcClientTelemetry(telemetry: Telemetry): Interceptor[] {
  return telemetry.isOn ? [tracing(telemetry)] : [];
}

function tracing(telemetry: Telemetry): Interceptor {
  return (next) => async (req) => {
    // Watches and sweeps belong to nobody's request.
    if (!telemetry.active()) return next(req);
    const method = `${req.service.typeName}/${req.method.name}`;
    const span = telemetry.start({
      family: "rpc.client",
      name: method,
      attributes: { "rpc.system.name": "connectrpc", "rpc.method": method },
    });
    for (const [name, value] of Object.entries(span.headers ?? {})) req.header.set(name, value);
    if (!span.isRecording) return next(req);
    const over = (error: unknown) => close(span, error === undefined ? undefined : codeOf(error));
    try {
      const res = await telemetry.run(span, () => next(req));
      if (!res.stream) {
        over(undefined);
        return res;
      }
      // Clients keep it to themselves that a reader has left; the call's signal tells.
      req.signal.addEventListener("abort", () => over(req.signal.reason), { once: true });
      // The other side sees to what happens within it.
      return { ...res, message: followed(res.message, undefined, over) };
    } catch (error) {
      over(error);
      throw error;
    }
  };
}
