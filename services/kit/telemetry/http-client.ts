import type { HttpBody, HttpClient, HttpRequest } from "../upstream/client.ts";
import type { Span, Telemetry } from "./port.ts";
import { errorType, traced } from "./traced.ts";

/**
 * `client`, whose requests are spans, to the last byte of their answers. Upstreams are others' and hear nothing of our
 * traces.
 */
export function tracedHttpClient(client: HttpClient, telemetry: Telemetry): HttpClient {
  if (!telemetry.isOn) return client;
  return {
    async request(request) {
      if (!telemetry.active()?.isRecording) return client.request(request);
      const span = telemetry.start(specOf(request));
      try {
        const reply = await client.request(request);
        span.set({ "http.response.status_code": reply.status });
        if (reply.status >= 400) span.fail(String(reply.status));
        return { ...reply, body: followedBody(reply.body, span) };
      } catch (error) {
        span.fail(errorType(error));
        span.end();
        throw error;
      }
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}

function specOf({ method, url }: HttpRequest) {
  return {
    family: "http.client",
    name: method,
    attributes: { "http.request.method": method, ...serverOf(new URL(url)) },
  } as const;
}

/** An upstream's address, which is the catalog's. */
function serverOf({ hostname, port, protocol }: URL) {
  const standard = protocol === "https:" ? 443 : 80;
  return { "server.address": hostname, "server.port": port === "" ? standard : Number(port) };
}

function followedBody(body: HttpBody, span: Span): HttpBody {
  const failed = (error: unknown) => {
    span.fail(errorType(error));
    span.end();
    throw error;
  };
  return {
    next: () =>
      body.next().then((chunk) => {
        if (!chunk) span.end();
        return chunk;
      }, failed),
    whole: (maxBytes) =>
      body.whole(maxBytes).then((bytes) => {
        span.end();
        return bytes;
      }, failed),
    isHeldBack: () => body.isHeldBack(),
    release() {
      body.release();
      span.end();
    },
    close() {
      body.close();
      span.end();
    },
  };
}

/** Runs a request of another library as a span. */
export function tracedRequest<T>(
  telemetry: Telemetry,
  request: Pick<HttpRequest, "method"> & { server: { host: string; port: number } },
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const { method, server } = request;
  const attributes = {
    "http.request.method": method,
    "server.address": server.host,
    "server.port": server.port,
  };
  return traced(telemetry, { family: "http.client", name: method, attributes }, work);
}
