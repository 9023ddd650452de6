import { Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { describeMongo } from "../support/mongo.ts";
import { openTcpWire } from "../support/tcp-wire.ts";

await describeMongo("a MongoDB client", (mongo) => {
  test("that found no server at first works once there is one", async () => {
    const url = new URL(mongo.url);
    await using wire = await openTcpWire(url.host);
    url.host = wire.address;
    wire.cut();
    await using db = mongo.connect(mongo.newName(), { url: url.href });
    const find = () => db.attempt(() => db.collection("thing").findOne({}));
    await expect(find()).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
    wire.mend();
    expect(await find()).toBeNull();
  });

  test("whose socket is destroyed as a command is written gets no answer in time, and works again", async () => {
    // The driver keeps the place in its pool, which has only one here.
    const url = new URL(mongo.url);
    url.searchParams.set("maxPoolSize", "1");
    await using db = mongo.connect(mongo.newName(), { url: url.href });
    const things = db.collection<{ _id: string }>("thing");
    const find = () => db.attempt(() => things.findOne({}));
    expect(await find()).toBeNull();
    const { write } = Socket.prototype;
    onTestFinished(() => void Object.assign(Socket.prototype, { write }));
    const breakNext = (text: string) =>
      Object.assign(Socket.prototype, {
        write(this: Socket, ...args: Parameters<typeof write>) {
          if (Buffer.isBuffer(args[0]) && args[0].includes(text)) {
            Object.assign(Socket.prototype, { write });
            this.destroy();
          }
          return write.apply(this, args);
        },
      });
    const refused = { reason: ErrorReason.SERVICE_UNAVAILABLE };
    breakNext("thing");
    await expect(db.attempt(() => things.find().limit(2).toArray())).rejects.toMatchObject(refused);
    expect(await find()).toBeNull();
    breakNext("thing");
    const read = db.attempt(async () => {
      for await (const { _id } of things.find()) return _id;
    });
    await expect(read).rejects.toMatchObject(refused);
    await things.insertOne({ _id: "a" });
    for await (const { _id } of things.find().sort({ _id: 1 })) expect(_id).toBe("a");
    expect(await things.find().toArray()).toEqual([{ _id: "a" }]);
  });
});
