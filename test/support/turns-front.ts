import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";

/** Gives each request to the next of several gateways. The requests of one browser take turns too. */
export interface TurnsFront extends AsyncDisposable {
  origin: string;
  /** Origins of the gateways. They are called only after a test has set them. */
  gateways: readonly string[];
  /** Gets all requests for files of the console. Undefined: they take turns, too. */
  assetsFrom: string | undefined;
  /** The number of requests of each gateway, by its origin. */
  asked: ReadonlyMap<string, number>;
}

/** Starts one. Every request has a connection of its own, so that a Service behind it chooses a pod each time. */
export async function startTurnsFront(): Promise<TurnsFront> {
  const asked = new Map<string, number>();
  let turn = 0;
  const server = createServer((incoming, answer) => {
    const isAsset = incoming.url?.startsWith("/console/assets/");
    const next = front.gateways[turn++ % front.gateways.length] ?? "";
    const gateway = (isAsset && front.assetsFrom) || next;
    asked.set(gateway, (asked.get(gateway) ?? 0) + 1);
    const { method, url: path, headers } = incoming;
    const { hostname: host, port } = new URL(gateway);
    const passed = request({ host, port, method, path, headers, agent: false }, (came) => {
      if (answer.destroyed) return;
      answer.writeHead(came.statusCode ?? 502, came.rawHeaders);
      // Sent at once, because events are read one by one.
      answer.flushHeaders();
      pipeline(came, answer, () => {});
    });
    passed.on("error", () => answer.destroy());
    // When the caller leaves, the gateway must notice.
    answer.once("close", () => passed.destroy());
    pipeline(incoming, passed, () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const front: TurnsFront = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    gateways: [],
    assetsFrom: undefined,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return front;
}
