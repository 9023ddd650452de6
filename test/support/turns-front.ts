import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";

/** Stands before several gateways and gives each request to the next of them, the requests of one browser too. */
export interface TurnsFront extends AsyncDisposable {
  origin: string;
  /** Origins of the gateways; none of them is asked before they are set. */
  gateways: readonly string[];
  /** How many requests each has got, by its origin. */
  asked: ReadonlyMap<string, number>;
}

/** Starts one. Every request goes on a connection of its own, so that a Service behind it chooses a pod each time. */
export async function startTurnsFront(): Promise<TurnsFront> {
  const asked = new Map<string, number>();
  let turn = 0;
  const server = createServer((incoming, answer) => {
    const gateway = front.gateways[turn++ % front.gateways.length] ?? "";
    asked.set(gateway, (asked.get(gateway) ?? 0) + 1);
    const { method, url: path, headers } = incoming;
    const { hostname: host, port } = new URL(gateway);
    const passed = request({ host, port, method, path, headers, agent: false }, (came) => {
      if (answer.destroyed) return;
      answer.writeHead(came.statusCode ?? 502, came.rawHeaders);
      // At once, as events are read one by one.
      answer.flushHeaders();
      pipeline(came, answer, () => {});
    });
    passed.on("error", () => answer.destroy());
    // Who leaves is seen to leave.
    answer.once("close", () => passed.destroy());
    pipeline(incoming, passed, () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const front: TurnsFront = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    gateways: [],
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return front;
}
