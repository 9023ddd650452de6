import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { BSON, type Document } from "mongodb";

/** The treatment of a command. A `lost request` never arrives. A `lost reply` is carried out. The connection breaks in both cases. */
export type Fate = "pass" | "lost request" | "lost reply";

/** A connection between clients and a server on which commands can be lost or delayed. */
export interface MongoWire extends AsyncDisposable {
  /** The address for clients, in place of the server's. */
  url: string;
  /**
   * Called for each command except those of connecting. By default all pass. A promise delays the command. A document is the answer in
   * place of the server's, which does not get the command.
   */
  rule: (command: Document) => Fate | Document | Promise<Fate | Document>;
}

/** Opens the connection to a server that is reached directly. */
export async function openMongoWire(serverUrl: string): Promise<MongoWire> {
  const server = new URL(serverUrl);
  const sockets = new Set<Socket>();
  const wire: Pick<MongoWire, "rule"> = { rule: () => "pass" };
  const listener = createServer((client) => {
    const upstream = connect(Number(server.port || 27_017), server.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
      socket.on("error", () => socket.destroy());
      socket.setNoDelay(true);
    }
    const lostReplies = new Set<number>();
    const cut = () => {
      client.destroy();
    };
    onFrames(client, async (frame) => {
      const command = commandOf(frame);
      const fate = isOfConnecting(command) ? "pass" : await wire.rule(command);
      if (fate === "lost request") return cut();
      if (typeof fate === "object") return void client.write(replyTo(frame, fate));
      if (fate === "lost reply") lostReplies.add(frame.readInt32LE(4));
      upstream.write(frame);
      return undefined;
    });
    onFrames(upstream, async (frame) => {
      if (lostReplies.has(frame.readInt32LE(8))) return cut();
      client.write(frame);
      return undefined;
    });
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const url = new URL(serverUrl);
  url.host = `127.0.0.1:${port}`;
  return Object.assign(wire, {
    url: url.href,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  });
}

/** Calls `handle` with whole messages, one after the other. */
function onFrames(socket: Socket, handle: (frame: Buffer) => Promise<void>): void {
  let rest = Buffer.alloc(0);
  let last = Promise.resolve();
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= rest.readInt32LE(0)) {
      const frame = rest.subarray(0, rest.readInt32LE(0));
      rest = rest.subarray(frame.length);
      last = last.then(() => handle(frame)).catch(() => void socket.destroy());
    }
  });
}

const opMessage = 2013;
/** Header, flags, and the kind of the first section, which is the command's body. */
const bodyAt = 21;

function commandOf(frame: Buffer): Document {
  if (frame.readInt32LE(12) !== opMessage) return { hello: 1 };
  const size = frame.readInt32LE(bodyAt);
  return BSON.deserialize(frame.subarray(bodyAt, bodyAt + size), { useBigInt64: true });
}

/** A message of the server that answers `frame`. */
function replyTo(frame: Buffer, document: Document): Buffer {
  const body = BSON.serialize(document);
  const head = Buffer.alloc(bodyAt);
  head.writeInt32LE(bodyAt + body.length, 0);
  head.writeInt32LE(frame.readInt32LE(4), 8);
  head.writeInt32LE(opMessage, 12);
  return Buffer.concat([head, body]);
}

function isOfConnecting(command: Document): boolean {
  return /^(hello|ismaster|saslStart|saslContinue|ping|endSessions|killCursors)$/i.test(
    Object.keys(command)[0] ?? "",
  );
}
