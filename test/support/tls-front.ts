import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Pair } from "./certificates.ts";

/** TLS in front of a server without TLS. */
export interface TlsFront extends AsyncDisposable {
  /** HOST:PORT for clients, in place of the server's. */
  address: string;
}

/**
 * Opens one in front of `target`, HOST:PORT. A server that `greets` speaks first, in NATS' way: a line of plain JSON that announces TLS.
 */
export async function openTlsFront(
  target: string,
  { cert, key }: Pair,
  { greets = false } = {},
): Promise<TlsFront> {
  const { hostname, port } = new URL(`tcp://${target}`);
  const sockets = new Set<Socket>();
  const listener = createServer(async (client) => {
    const server = connect(Number(port), hostname);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    }
    if (greets) client.write(requiringTls(String((await once(server, "data"))[0])));
    const secure = new TLSSocket(client, { isServer: true, cert, key });
    const end = () => {
      for (const socket of [client, server]) socket.destroy();
    };
    secure.on("error", end).on("close", end);
    server.on("close", end);
    secure.pipe(server);
    server.pipe(secure);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    address: `127.0.0.1:${(listener.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
}

function requiringTls(greeting: string): string {
  const [, json = "{}"] = /^INFO (.*)\r\n$/.exec(greeting) ?? [];
  return `INFO ${JSON.stringify({ ...JSON.parse(json), tls_required: true })}\r\n`;
}
