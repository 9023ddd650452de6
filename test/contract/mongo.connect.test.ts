import { expect, test } from "vitest";
import { ErrorReason } from "#kit/errors.ts";
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
});
