import type { ServerResponse } from "node:http";
import type { Metrics } from "#kit/metrics.ts";
import type { HostContext, Readiness } from "./context.ts";
import { createHttpPort, type PartialHandler } from "./http-port.ts";

/** What an operator's machinery asks, without a token: liveness, readiness, metrics. */
export function createOpsHandler(deps: { notReady: Readiness; metrics: Metrics }): PartialHandler {
  const plain = (response: ServerResponse, status: number, text: string) => {
    response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(`${text}\n`);
  };
  return (request, response) => {
    if (request.method !== "GET" && request.method !== "HEAD") return false;
    switch (request.url?.split("?")[0]) {
      case "/healthz":
        plain(response, 200, "ok");
        return true;
      case "/readyz": {
        const reason = deps.notReady();
        plain(response, reason === undefined ? 200 : 503, reason ?? "ready");
        return true;
      }
      case "/metrics":
        deps.metrics.text().then(
          (text) => response.writeHead(200, { "content-type": deps.metrics.contentType }).end(text),
          () => plain(response, 500, "the metrics cannot be read"),
        );
        return true;
      default:
        return false;
    }
  };
}

/** Opens the plain port of health and metrics, where they have one; `stack` closes it. Answers whether they have. */
export async function listenForOps(
  context: HostContext,
  notReady: Readiness,
  stack: AsyncDisposableStack,
): Promise<boolean> {
  const { ops } = context.config.ports;
  if (!ops) return false;
  const port = createHttpPort({
    address: { ...ops, portVariable: "GENMESH_OPS_PORT", hostVariable: "HOST" },
    handlers: [createOpsHandler({ ...context, notReady })],
  });
  await stack.use(port).listen();
  return true;
}
