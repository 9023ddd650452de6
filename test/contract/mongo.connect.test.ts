import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { ErrorReason } from "#kit/errors.ts";
import { describeMongo } from "../support/mongo.ts";

await describeMongo("a MongoDB client", (mongo) => {
  test("that found no server at first works once there is one", async () => {
    const { hostname, port } = new URL(mongo.url);
    const server = createServer((socket) => {
      const upstream = connect(Number(port), hostname);
      for (const one of [socket, upstream]) one.on("error", () => one.destroy());
      socket.pipe(upstream).pipe(socket);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port: ownPort } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    const url = new URL(mongo.url);
    url.port = String(ownPort);
    const db = mongo.connect(mongo.newName(), { url: url.href });
    const find = () => db.attempt(() => db.collection("thing").findOne({}));
    await expect(find()).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
    server.listen(ownPort, "127.0.0.1");
    await once(server, "listening");
    expect(await find()).toBeNull();
    await db[Symbol.asyncDispose]();
    server.close();
  });
});
