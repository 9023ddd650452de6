// Serves the calls that other processes of the mesh send by `wire-transport.ts`. `server.ts` serves gRPC on a port of its own.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Interceptor } from "@connectrpc/connect";
import { parseContentType } from "@connectrpc/connect/protocol-connect";
import { type IsCaller, isOpenPath, refusalBeforeBody } from "./gate.ts";
import type { RpcService } from "./service.ts";
import { maxMessageBytes } from "./wire/limits.ts";
import { type Route, routesOf } from "./wire/routes.ts";
import { serveStream } from "./wire/serve-stream.ts";
import { serveUnary } from "./wire/serve-unary.ts";

/** Options of a wire server. */
export interface WireServerOptions {
  services: readonly RpcService[];
  /** Outermost first. Every service has the same ones. */
  interceptors: readonly Interceptor[];
  /** Called with the head of each call, except calls of health. Other calls are refused unread. Absent: all are read. */
  isCaller?: IsCaller;
  /** Largest request or message of a stream, in bytes. Default: {@link maxMessageBytes}. */
  maxMessageBytes?: number;
}

/** The Connect protocol on a node:http server that its caller owns. */
export interface WireServer {
  /** Serves a request. False, with nothing done, where its path is no RPC's. */
  handler(req: IncomingMessage, res: ServerResponse): boolean;
  /** Calls under way. */
  readonly openCalls: number;
}

/** The path of an RPC: a dotted service name and a method name. */
const rpcPath = /^\/[A-Za-z_][\w]*(\.[A-Za-z_]\w*)+\/[A-Za-z_]\w*$/;

/**
 * Serves the Connect protocol, binary and JSON, over HTTP/1.1 without compression. It takes unary calls and streams of every kind, as
 * far as HTTP/1.1 carries them. A request is read while its answer is written, if the client does so too. Passed deadlines and callers
 * that leave abort the handler's signal. Errors and interceptors are those of the gRPC server.
 */
export function createWireServer(options: WireServerOptions): WireServer {
  const routes = routesOf(options.services, {
    interceptors: options.interceptors,
    maxBytes: options.maxMessageBytes ?? maxMessageBytes,
  });
  let openCalls = 0;
  return {
    get openCalls() {
      return openCalls;
    },
    handler(req, res) {
      const path = pathOf(req.url ?? "");
      const route = routes.get(path);
      if (!route) return rpcPath.test(path) && refuse(res, 404);
      if (req.method !== "POST") return refuse(res, 405, { allow: "POST" });
      const type = parseContentType(req.headers["content-type"] ?? null);
      if (!type || type.stream !== route.isStream) {
        return refuse(res, 415, { "accept-post": acceptPost(route) });
      }
      if (options.isCaller && !isOpenPath(path) && !options.isCaller(req.headers.authorization)) {
        const { status, headers, body } = refusalBeforeBody(req.headers["content-type"]);
        // The body is not read, so its connection can serve nothing else.
        res.writeHead(status, { ...headers, connection: "close" }).end(body);
        return true;
      }
      openCalls++;
      res.once("close", () => openCalls--);
      const serve = route.isStream ? serveStream : serveUnary;
      // An error that cannot be sent to the caller (a header that HTTP refuses) breaks the connection.
      serve(route, req, res, type.binary).catch(() => res.destroy());
      return true;
    },
  };
}

function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

function acceptPost({ isStream }: Route): string {
  return isStream
    ? "application/connect+proto, application/connect+json"
    : "application/proto, application/json";
}

function refuse(res: ServerResponse, status: number, headers: Record<string, string> = {}): true {
  res.writeHead(status, { ...headers, "content-length": "0" }).end();
  return true;
}
