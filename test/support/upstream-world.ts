import { expect } from "vitest";
import type { RefusalError } from "#kit/base/errors.ts";
import { createTextUpstreams } from "../../services/upstreams/text/index.ts";
import {
  bytesOfBody,
  type JsonAnswer,
  type StreamAnswer,
  type TextUpstreams,
  type UpstreamRequest,
} from "../../services/upstreams/text/port.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "./scripted-upstream.ts";
import { collect, testContext, testUpstream } from "./text-requests.ts";

/** The upstream side of text beside a scripted upstream. */
export interface UpstreamWorld extends AsyncDisposable {
  server: ScriptedUpstream;
  texts: TextUpstreams;
  /** The scripted upstream in the catalog's form. */
  at(...upstream: Parameters<typeof testUpstream>): ReturnType<typeof testUpstream>;
  /** A whole answer, and its parsed body. */
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape.
  json(request: UpstreamRequest): Promise<{ answer: JsonAnswer; body: any }>;
  /** A stream, read to its end. */
  stream(
    request: UpstreamRequest,
  ): Promise<{ answer: StreamAnswer } & Awaited<ReturnType<typeof collect>>>;
  /** The refusal of a request that must not be answered. */
  refusalFrom(request: UpstreamRequest): Promise<RefusalError>;
  reasonFrom(request: UpstreamRequest): Promise<RefusalError["reason"]>;
}

/** Starts both. `UP_KEY` is a configured secret. */
export async function startUpstreamWorld(
  changes: Parameters<typeof testContext>[0] = {},
): Promise<UpstreamWorld> {
  const server = await startScriptedUpstream();
  const secrets = (name: string) => (name === "UP_KEY" ? "sk-test" : undefined);
  const context = testContext({ secrets, ...changes });
  const texts = createTextUpstreams(context);
  const refusalFrom = (request: UpstreamRequest): Promise<RefusalError> =>
    texts.send(request).then(
      () => expect.unreachable("it was answered"),
      (error) => error,
    );
  return {
    server,
    texts,
    at: (protocol, changes = {}) => testUpstream(protocol, { baseUrl: server.baseUrl, ...changes }),
    async json(request) {
      const answer = (await texts.send(request)) as JsonAnswer;
      expect(answer.kind).toBe("json");
      return { answer, body: JSON.parse(Buffer.from(bytesOfBody(answer.body)).toString()) };
    },
    async stream(request) {
      const answer = (await texts.send({ ...request, stream: true })) as StreamAnswer;
      expect(answer.kind).toBe("stream");
      return { answer, ...(await collect(answer)) };
    },
    refusalFrom,
    reasonFrom: async (request) => (await refusalFrom(request)).reason,
    async [Symbol.asyncDispose]() {
      await context.builtin[Symbol.asyncDispose]();
      await context.http[Symbol.asyncDispose]();
      await server.close();
    },
  };
}
