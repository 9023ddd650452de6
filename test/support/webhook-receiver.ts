import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { until } from "./until.ts";

/** What came to a receiver. */
export interface Received {
  path: string;
  id: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Answers what came; default 204. */
export type Answering = (response: ServerResponse, received: Received) => void;

/** A receiver of webhooks, as a user has one. */
export interface WebhookReceiver extends AsyncDisposable {
  /** Without a path. */
  url: string;
  received: Received[];
  answer: Answering;
  /** Waits until so many have come to a path. */
  took(path: string, count: number): Promise<Received[]>;
}

/** Starts one on a free port of this machine. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const { url: path = "", headers } = request;
    const came = { path, id: String(headers["webhook-id"]), headers, body };
    receiver.received.push(came);
    receiver.answer(response, came);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: [],
    answer: (response) => response.writeHead(204).end(),
    took: (path, count) =>
      until(
        `${count} webhooks at ${path}`,
        () => {
          const came = receiver.received.filter((one) => one.path === path);
          return came.length >= count ? came : undefined;
        },
        { withinMs: 60_000 },
      ),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}

/** Verifies as a receiver does, with the library of Standard Webhooks, and gives what was told. Throws where it is not right. */
// biome-ignore lint/suspicious/noExplicitAny: documents of every shape.
export function verified({ body, headers }: Received, secret: string): any {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}
