// Adds spans to requests to upstreams. So no driver needs code for them.

import type { Span } from "@opentelemetry/api";
import { staged } from "#kit/stream/stages.ts";
import type { HttpBody, HttpClient, HttpReply, HttpRequest } from "../upstream/client.ts";
import { type Attributes, endSpan, errorType, failSpan, isTraced, startSpan } from "./spans.ts";

/**
 * `client`, whose requests become spans, to the last byte of their answers. Upstreams belong to others and get nothing of our traces.
 */
export function tracedHttpClient(client: HttpClient): HttpClient {
  return {
    request: (request) => (isTraced() ? traced(request) : client.request(request)),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };

  async function traced(request: HttpRequest): Promise<HttpReply> {
    const span = startSpan(specOf(request));
    try {
      const reply = await client.request(request);
      span.setAttributes({ "http.response.status_code": reply.status } satisfies Attributes);
      if (reply.status >= 400) failSpan(span, String(reply.status));
      return { ...reply, body: followedBody(reply.body, span) };
    } catch (error) {
      failSpan(span, errorType(error));
      endSpan(span);
      throw error;
    }
  }
}

function specOf({ method, url }: HttpRequest) {
  return {
    family: "http.client",
    name: method,
    attributes: { "http.request.method": method, ...serverOf(new URL(url)) },
  } as const;
}

/** An upstream's address, as the catalog has it. */
function serverOf({ hostname, port, protocol }: URL) {
  const standard = protocol === "https:" ? 443 : 80;
  return { "server.address": hostname, "server.port": port === "" ? standard : Number(port) };
}

function followedBody(body: HttpBody, span: Span): HttpBody {
  const over = () => endSpan(span);
  const failed = (error: unknown) => {
    failSpan(span, errorType(error));
    endSpan(span);
    return error;
  };
  const raise = (error: unknown) => {
    throw failed(error);
  };
  return {
    chunks: staged(body.chunks, { end: over, fail: failed, leave: over }),
    next: () =>
      body.next().then((chunk) => {
        if (!chunk) over();
        return chunk;
      }, raise),
    async whole(maxBytes, room) {
      try {
        return await body.whole(maxBytes, room);
      } catch (error) {
        throw failed(error);
      } finally {
        over();
      }
    },
    isHeldBack: () => body.isHeldBack(),
    release() {
      body.release();
      over();
    },
    close() {
      body.close();
      over();
    },
  };
}
