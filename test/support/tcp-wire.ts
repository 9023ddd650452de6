import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A connection between clients and a server that a test can cut and delay, while the server itself runs on. */
export interface TcpWire extends AsyncDisposable {
  /** HOST:PORT for clients, in place of the server's. */
  address: string;
  /** Breaks every connection, and refuses new ones until {@link mend}. */
  cut(): void;
  /** Breaks every connection, and accepts new ones. */
  snap(): void;
  /** Bytes of both directions wait until {@link mend}. Connections are accepted. */
  hold(): void;
  mend(): void;
  /** Called with each chunk of the server before it passes. It may call the other methods. */
  onReply: (chunk: Buffer) => void;
  /** Called with each chunk of a client before it passes. */
  onRequest: (chunk: Buffer) => void;
}

/** Opens the connection to `target`, HOST:PORT. */
export async function openTcpWire(target: string): Promise<TcpWire> {
  const { hostname, port } = new URL(`tcp://${target}`);
  const pairs = new Set<[Socket, Socket]>();
  let state: "open" | "cut" | "held" = "open";
  const snap = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  const flow = () => {
    for (const pair of pairs) {
      for (const socket of pair) state === "held" ? socket.pause() : socket.resume();
    }
  };
  const listener = createServer((client) => {
    if (state === "cut") return void client.destroy();
    const server = connect(Number(port), hostname);
    const pair: [Socket, Socket] = [client, server];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on("close", end).on("error", end).setNoDelay(true);
    client.on("data", (chunk) => {
      wire.onRequest(chunk);
      if (!server.destroyed) server.write(chunk);
    });
    server.on("data", (chunk) => {
      wire.onReply(chunk);
      if (!client.destroyed) client.write(chunk);
    });
    if (state === "held") flow();
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const wire: TcpWire = {
    address: `127.0.0.1:${(listener.address() as AddressInfo).port}`,
    onReply: () => {},
    onRequest: () => {},
    snap,
    cut() {
      state = "cut";
      snap();
    },
    hold() {
      state = "held";
      flow();
    },
    mend() {
      state = "open";
      flow();
    },
    async [Symbol.asyncDispose]() {
      snap();
      listener.close();
      await once(listener, "close");
    },
  };
  return wire;
}
