import { once } from "node:events";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { certificateFolder, noCertificates } from "../../../test/support/certificates.ts";
import { boundConnections, networkOf, noteValidKey, noteWork } from "./connection-bounds.ts";

let server: Server;
const asked: ServerResponse[] = [];
const sockets: Socket[] = [];

/** A listener that leaves the answer open. */
const answer: RequestListener = (request, response) => {
  asked.push(response);
  const { account } = request.headers;
  if (typeof account === "string") noteValidKey(request.socket, account);
};

beforeEach(async () => {
  server = createServer(answer);
  boundConnections(server, { total: 3, each: 2, isShared: () => false });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const answer of asked.splice(0)) answer.destroy();
  server.close();
  await once(server, "close");
});

async function open(localAddress: string): Promise<Socket> {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  sockets.push(socket);
  socket.on("error", () => {});
  socket.resume();
  await once(socket, "connect");
  return socket;
}

/** Resolves when the server has closed the socket, even if that was before this call. */
async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise<void>((resolve) => socket.once("close", () => resolve()));
}

/** Sends a request; resolves with its open answer. */
async function ask(
  socket: Socket,
  { account, of = server }: { account?: string; of?: Server } = {},
): Promise<ServerResponse | undefined> {
  const begun = once(of, "request");
  const key = account === undefined ? "" : `Account: ${account}\r\n`;
  socket.write(`GET / HTTP/1.1\r\nHost: x\r\n${key}\r\n`);
  await begun;
  return asked.at(-1);
}

/** Sends a request, and has it answered. */
async function served(socket: Socket, asking: { account: string; of?: Server }): Promise<void> {
  const given = (await ask(socket, asking)) as ServerResponse;
  const answered = once(given, "close");
  given.end();
  await answered;
}

test("at the total the connection closes that was without a request for longest; one under way stays", async () => {
  const [busy, first, second] = [
    await open("127.0.0.2"),
    await open("127.0.0.2"),
    await open("127.0.0.3"),
  ];
  const given = await ask(busy);
  await ask(await open("127.0.0.4"));
  await closed(first);
  await ask(await open("127.0.0.5"));
  await closed(second);
  // All connections have a request under way, so the newcomer closes.
  await closed(await open("127.0.0.6"));
  // A connection whose answer is over is the one that closes for a newcomer.
  const answered = once(given as ServerResponse, "close");
  given?.end();
  await answered;
  await ask(await open("127.0.0.6"));
  await closed(busy);
});

test("an address whose own connection made room for its newcomer has no more than before", async () => {
  const [first, second] = [await open("127.0.0.2"), await open("127.0.0.3")];
  await open("127.0.0.3");
  await ask(await open("127.0.0.2"));
  await closed(first);
  const newcomer = await open("127.0.0.2");
  await ask(newcomer);
  await closed(second);
  expect(newcomer.destroyed).toBe(false);
});

test("a connection stays while its WebSocket has work under way", async () => {
  const [busy, idle] = [await open("127.0.0.2"), await open("127.0.0.2")];
  const given = (await ask(busy, { account: "one" })) as ServerResponse;
  const end = noteWork(given.socket as Socket);
  const answered = once(given, "close");
  given.end();
  await answered;
  await served(idle, { account: "one" });
  await served(await open("127.0.0.3"), { account: "other" });
  const newcomer = await open("127.0.0.4");
  await closed(idle);
  await served(newcomer, { account: "one" });
  end();
  await open("127.0.0.5");
  await closed(newcomer);
  expect(busy.destroyed).toBe(false);
});

test("where all have shown a key, the one of the account with most closes that is idle for longest", async () => {
  const [busy, idle, other] = [
    await open("127.0.0.2"),
    await open("127.0.0.2"),
    await open("127.0.0.3"),
  ];
  const given = await ask(busy, { account: "much" });
  await served(idle, { account: "much" });
  await served(other, { account: "little" });
  const newcomer = await open("127.0.0.4");
  await closed(idle);
  await served(newcomer, { account: "another" });
  // Each account has one connection now, and keeps it.
  given?.end();
  await closed(await open("127.0.0.5"));
  expect([busy, other, newcomer].map((socket) => socket.destroyed)).toEqual([false, false, false]);
});

test.skipIf(noCertificates)(
  "over TLS too, a request under way and a key keep a connection",
  async () => {
    await using folder = await certificateFolder();
    const { cert, key } = await (await folder.authority()).issue("127.0.0.1");
    const secure = createSecureServer({ cert, key }, answer);
    boundConnections(secure, { total: 3, each: 2, isShared: () => false });
    secure.listen(0, "127.0.0.1");
    await once(secure, "listening");
    const { port } = secure.address() as AddressInfo;
    const openSecure = async (localAddress: string) => {
      const raw = connect({ port, host: "127.0.0.1", localAddress });
      const socket = connectTls({ socket: raw, rejectUnauthorized: false });
      sockets.push(socket);
      socket.on("error", () => {}).resume();
      await once(socket, "secureConnect");
      return socket;
    };
    const [busy, keyed, idle] = [
      await openSecure("127.0.0.2"),
      await openSecure("127.0.0.2"),
      await openSecure("127.0.0.3"),
    ];
    await ask(busy, { of: secure });
    await served(keyed, { account: "one", of: secure });
    await openSecure("127.0.0.4");
    await closed(idle);
    expect([busy, keyed].map((socket) => socket.destroyed)).toEqual([false, false]);
    for (const socket of sockets) socket.destroy();
    secure.close();
    await once(secure, "close");
  },
);

test("a connection counts as of the account whose key it showed last", async () => {
  const [first, second, third] = [
    await open("127.0.0.2"),
    await open("127.0.0.2"),
    await open("127.0.0.3"),
  ];
  for (const socket of [first, second]) await served(socket, { account: "one" });
  for (const socket of [third, second]) await served(socket, { account: "two" });
  await open("127.0.0.4");
  await closed(third);
});

test("an address that has its share closes no other's connection", async () => {
  const other = await open("127.0.0.3");
  await open("127.0.0.2");
  await open("127.0.0.2");
  await closed(await open("127.0.0.2"));
  expect(await ask(other)).toBeDefined();
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::6", "2001:db8:1:2::/64"],
  ["2001:db8::6", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
])("%s counts as %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
