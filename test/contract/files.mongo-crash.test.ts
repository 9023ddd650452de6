import { afterAll, beforeAll, expect, test } from "vitest";
import { createImageVerifier, type ImageVerifier } from "#kit/images/index.ts";
import { noise } from "#kit/images/samples.fixture.ts";
import { manualClock } from "#kit/time/clock.ts";
import { storeLeaseMs } from "../../services/media/files/limits.ts";
import { createMongoQuota } from "../../services/media/files/quota-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { openMongoWire } from "../support/mongo-wire.ts";
import { auditQuota } from "./files.quota.mongo-audit.ts";
import {
  alice,
  createFilesWorld,
  type FilesWorld,
  newGround,
  quotaOfSizes,
  uploadOf,
} from "./files.world.ts";

const { accountId } = alice;
const isWrite = /^(insert|update|delete|findAndModify)$/;
const never = new Promise<never>(() => {});

await describeMongo("file storage on MongoDB, killed at any write", (mongo) => {
  let verifier: ImageVerifier;
  let image: Buffer;

  beforeAll(async () => {
    verifier = createImageVerifier({ processes: 1, memoryMb: 768, timeoutMs: 20_000 });
    image = await noise(30, 20).png().toBuffer();
  });
  afterAll(() => verifier[Symbol.asyncDispose]());

  /** `done` gets the answered changes. */
  async function live({ client, files }: FilesWorld, done: Set<string>): Promise<void> {
    const { file } = await client.uploadFile(uploadOf(image, { idempotencyKey: "k1" }));
    done.add("uploaded");
    await client.deleteFile({ fileId: file?.fileId ?? "" });
    done.add("deleted");
    await files.sweep();
  }

  /** Dies at the `at`-th write: before it arrives, or after it was made and before its answer. False where it survived. */
  async function dieAt(at: number, when: "before" | "after"): Promise<boolean> {
    const name = mongo.newName();
    await using ground = await newGround();
    await using wire = await openMongoWire(mongo.url);
    const { promise: died, resolve: die } = Promise.withResolvers<void>();
    // A process that has lost its connection waits before it connects again. The process dies in that wait.
    const lastSleep = () => {
      die();
      return never;
    };
    const doomedMongo = mongo.connect(name, {
      url: wire.url,
      clock: { ...manualClock(), sleep: lastSleep },
    });
    const doomed = await createFilesWorld({
      ground,
      verifier,
      database: { kind: "mongodb", mongo: doomedMongo },
    });
    await doomed.files.sweep();
    let writes = 0;
    let isDead = false;
    wire.rule = (command) => {
      if (isDead) return never;
      if (!isWrite.test(Object.keys(command)[0] ?? "") || ++writes < at) return "pass";
      isDead = true;
      if (when === "after") return "lost reply";
      die();
      return never;
    };
    const done = new Set<string>();
    await Promise.race([died, live(doomed, done)]);
    const ended = doomed[Symbol.asyncDispose]();
    if (!isDead) await ended;

    const database = { kind: "mongodb", mongo: mongo.connect(name) } as const;
    const quota = createMongoQuota(database.mongo);
    await using world = await createFilesWorld({ ground, verifier, database });
    await ground.clock.advance(storeLeaseMs + 1);
    await world.files.sweep();
    const expectWhole = async () => {
      const usedBytes = await world.listedQuota();
      expect(await quota.usage(accountId)).toEqual({ usedBytes, reservedBytes: 0, keptBytes: 0 });
      const { told, counted } = await auditQuota(mongo.raw(name), accountId);
      expect(counted).toEqual(told);
      expect(await world.blobKeys()).toHaveLength(usedBytes / quotaOfSizes(image.length));
    };
    await expectWhole();

    // A change without an answer can be repeated, and is made once.
    const again = await world.client.uploadFile(uploadOf(image, { idempotencyKey: "k1" }));
    if (done.has("deleted")) expect(again.replayed).toBe(false);
    expect(await world.listedBytes()).toBe(image.length);
    await expectWhole();
    await world.client.deleteFile({ fileId: again.file?.fileId ?? "" });
    await world.files.sweep();
    expect(await quota.usage(accountId)).toEqual({ usedBytes: 0, reservedBytes: 0, keptBytes: 0 });
    await expectWhole();
    return isDead;
  }

  test.each(["before", "after"] as const)(
    "%s it is made, used is the sum of what is seen",
    async (when) => {
      let writes = 0;
      while (await dieAt(writes + 1, when)) writes++;
      // The file's record, room in the quota, counted, shown, removed, freed, erased.
      expect(writes).toBeGreaterThanOrEqual(7);
    },
    120_000,
  );
});
