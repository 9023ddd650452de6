import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** An answer in the bytes of the wire. */
export interface RawAnswer {
  status: number;
  /** With lower-case names. */
  headers: Record<string, string>;
  body: string;
}

/** A connection that sends any bytes, also those that no HTTP client would send. */
export interface RawConnection extends Disposable {
  socket: Socket;
  send(bytes: string | Buffer): void;
  /** Everything received so far. */
  received(): string;
  /** Waits until `holds` is true for the received bytes. Rejects where the connection closes before. */
  until(holds: (received: string) => boolean): Promise<string>;
  /** Waits until the other side has closed, and gives all received bytes. */
  closed(): Promise<string>;
}

/** Opens a connection to the local port. `from` may be another address of the loopback. */
export async function openRaw(
  port: number,
  host = "127.0.0.1",
  localAddress?: string,
): Promise<RawConnection> {
  const socket = connect({ port, host, ...(localAddress === undefined ? {} : { localAddress }) });
  let text = "";
  let over = false;
  const news: (() => void)[] = [];
  const tell = () => {
    for (const one of news.splice(0)) one();
  };
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    text += chunk;
    tell();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    over = true;
    tell();
  });
  await once(socket, "connect");
  const wait = () => new Promise<void>((resolve) => news.push(resolve));
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    received: () => text,
    async until(holds) {
      while (!holds(text)) {
        if (over) throw new Error(`the connection closed after: ${text}`);
        await wait();
      }
      return text;
    },
    async closed() {
      while (!over) await wait();
      return text;
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Sends `bytes`, waits until the connection closes, and reads the first answer. */
export async function exchange(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  using raw = await openRaw(port);
  raw.send(bytes);
  return parseAnswer(await raw.closed());
}

/** The first answer of a text. Its body is the rest. */
export function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf("\r\n\r\n");
  const [line = "", ...fields] = text.slice(0, end).split("\r\n");
  const headers: Record<string, string> = {};
  for (const field of fields) {
    const at = field.indexOf(":");
    headers[field.slice(0, at).toLowerCase()] = field.slice(at + 1).trim();
  }
  return { status: Number(line.split(" ")[1]), headers, body: text.slice(end + 4) };
}
