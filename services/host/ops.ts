// Opens the operations port, which answers metrics and health, and makes the health answers that other ports give too.

import type { ServerResponse } from "node:http";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Config } from "./config.ts";
import type { HostContext, Readiness } from "./context.ts";
import { createHttpPort, type PartialHandler } from "./http-port.ts";
import { type Address, hostInUrl } from "./listen.ts";

/** Liveness and readiness, without a token, for probes of any port of a process. */
export function createHealthHandler(notReady: Readiness): PartialHandler {
  return (request, response) => {
    if (request.method !== "GET" && request.method !== "HEAD") return false;
    switch (request.url?.split("?")[0]) {
      case "/healthz":
      case "/livez":
        plain(response, 200, "ok");
        return true;
      case "/readyz": {
        const reason = notReady();
        plain(response, reason === undefined ? 200 : 503, reason ?? "ready");
        return true;
      }
      default:
        return false;
    }
  };
}

function createMetricsHandler(metrics: Metrics): PartialHandler {
  return (request, response) => {
    if (request.method !== "GET" && request.method !== "HEAD") return false;
    if (request.url?.split("?")[0] !== "/metrics") return false;
    metrics.text().then(
      (text) => send(response, 200, metrics.contentType, text),
      () => plain(response, 500, "the metrics cannot be read"),
    );
    return true;
  };
}

function plain(response: ServerResponse, status: number, text: string): void {
  send(response, status, "text/plain; charset=utf-8", `${text}\n`);
}

/** With its length, which an answer to HEAD has too. */
function send(response: ServerResponse, status: number, contentType: string, text: string): void {
  const length = Buffer.byteLength(text);
  response.writeHead(status, { "content-type": contentType, "content-length": length }).end(text);
}

/** The address of the operations port. */
export function opsAddress({ role, ports }: Pick<Config, "role" | "ports">): Address {
  const portVariable = "GENMESH_OPS_PORT";
  return { ...ports.ops, portVariable, ...(role === "all" ? {} : { hostVariable: "HOST" }) };
}

/**
 * Opens the operations port with metrics and health. Metrics name upstreams and totals, so no port that callers reach has them. `stack`
 * closes the port. Answers its URL.
 */
export async function listenForOps(
  { config, metrics }: HostContext,
  notReady: Readiness,
  stack: AsyncDisposableStack,
): Promise<string> {
  const address = opsAddress(config);
  const port = stack.use(
    createHttpPort({
      address,
      handlers: [createHealthHandler(notReady), createMetricsHandler(metrics)],
    }),
  );
  return `http://${hostInUrl(address.host)}:${await port.listen()}`;
}
