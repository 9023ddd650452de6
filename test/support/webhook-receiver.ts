import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { until } from "./until.ts";

/** A webhook that a receiver took. */
export interface Received {
  path: string;
  id: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Answers a webhook. Default 204. */
export type Answering = (response: ServerResponse, received: Received) => void;

/** A receiver of webhooks, like a caller's. */
export interface WebhookReceiver extends AsyncDisposable {
  /** Has no path. */
  url: string;
  received: Received[];
  answer: Answering;
  /** Waits until a path has taken `count` webhooks. */
  took(path: string, count: number): Promise<Received[]>;
}

/** Starts a receiver on a free port of this machine. */
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

/** Verifies a webhook with the library of Standard Webhooks, like a receiver, and gives its content. Throws where it is invalid. */
// biome-ignore lint/suspicious/noExplicitAny: documents of every shape.
export function verified({ body, headers }: Received, secret: string): any {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}
