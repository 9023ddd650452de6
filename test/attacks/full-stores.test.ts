import type { Document } from "mongodb";
import { afterEach, beforeEach, expect, test } from "vitest";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { type Asked, type Caller, refusalOf } from "../e2e/caller.ts";
import {
  creditsOf,
  download,
  ended,
  heldImages,
  type MediaWorld,
  pathOf,
  remove,
  startMediaWorld,
  submit,
  upload,
} from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { describeWithServers } from "../support/on-servers.ts";
import { openS3Front, type S3Front } from "../support/s3-front.ts";
import { ownStores } from "../support/stores.ts";
import { until } from "../support/until.ts";

/** The error of a server that answers reads and refuses writes. */
const errmsg = "no write is taken";
const writeError = (code: number) => ({ ok: 1, n: 0, writeErrors: [{ index: 0, code, errmsg }] });
const outOfSpace = { ok: 0, code: 14_031, codeName: "OutOfDiskSpace", errmsg };
const databaseRefusals: readonly (readonly [string, Document])[] = [
  ["out of disk space", outOfSpace],
  ["out of disk space, of one document", writeError(14_031)],
  ["closed to users' writes", { ok: 0, code: 371, codeName: "UserWritesBlocked", errmsg }],
  ["PostgreSQL's disk full", { ok: 0, code: 4_293, codeName: "DiskFull", errmsg }],
  ["PostgreSQL read-only", { ok: 0, code: 100_663_618, codeName: "ReadOnly", errmsg }],
];
const storeRefusals = [
  { status: 507, code: "XMinioStorageFull" },
  { status: 400, code: "XMinioAdminBucketQuotaExceeded" },
  { status: 403, code: "AccessDenied" },
] as const;
const writes = /^(insert|update|delete|findAndModify|create|createIndexes)$/;
/** Refuses commands that write. Where the refusal is of single documents, a command that changes one and returns it fails as a whole. */
const refusing =
  (refusal: Document): MongoWire["rule"] =>
  (command) => {
    const [name = ""] = Object.keys(command);
    if (!writes.test(name)) return "pass";
    const isOfDocuments = "writeErrors" in refusal && /^(insert|update|delete)$/.test(name);
    return isOfDocuments || !("writeErrors" in refusal) ? refusal : outOfSpace;
  };

const unavailable = "503 server_error service_unavailable null";
const patience = { withinMs: 60_000, everyMs: 50 };

const text = { model: "scripted", input: "Hi", max_output_tokens: 16 };
const messages = [{ role: "user", content: "Hi" }];
const speech = { model: "scripted-speech", input: "Hi", voice: "alloy" };
const image = { model: "scripted-image", prompt: "x", size: "64x64" };
const film = { model: "text-only", prompt: "x", seconds: 6, resolution: "480p" };
const music = { model: "music-1", mode: "instrumental", title: "x" };

oneProcessOnly();

await describeWithServers("a store that answers, and takes no writes:", () => {
  let stack: AsyncDisposableStack;
  let mongo: MongoWire;
  let s3: S3Front;
  let media: MediaWorld;
  let payer: Caller;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    const stores = await ownStores(stack, "full");
    if (!stores) throw new Error("there is no server for one of the stores");
    mongo = stack.use(await openMongoWire(stores.urls.mongodb));
    s3 = stack.use(await openS3Front(stores.urls.s3));
    const env = { GENMESH_DATABASE_URL: mongo.url, GENMESH_BLOBS_URL: s3.url };
    media = stack.use(await startMediaWorld({ env }));
    payer = await media.world.caller({ usdMicros: 10_000_000n, credits: 1_000n });
  });
  afterEach(() => stack.disposeAsync());

  const readiness = async () => {
    const answer = await fetch(new URL("/readyz", media.world.baseUrl));
    return `${answer.status} ${(await answer.text()).trim()}`;
  };
  const untilReady = () =>
    until("readiness", async () => (await readiness()) === "200 ready", patience);
  /** The credits once no hold is left. */
  const untilFree = () =>
    until(
      "no credit to be held",
      async () => {
        const credits = await creditsOf(payer);
        return credits.reserved === 0 ? credits : undefined;
      },
      patience,
    );
  const asked = (pattern: string) => media.media.seen(pattern).length;

  /** Each route that writes, and its status where the stores work. */
  const writing: readonly (readonly [string, (fileId: string) => Promise<Asked>, number])[] = [
    ["responses", () => payer.post("/responses", text), 200],
    ["responses as a stream", () => payer.post("/responses", { ...text, stream: true }), 200],
    ["compact", () => payer.post("/responses/compact", text), 200],
    ["chat", () => payer.post("/chat/completions", { model: "scripted", messages }), 200],
    [
      "chat as a stream",
      () => payer.post("/chat/completions", { model: "scripted", messages, stream: true }),
      200,
    ],
    ["speech", () => payer.post("/speech/generations", speech), 200],
    ["images", () => payer.post("/images/generations", image), 202],
    ["videos", () => payer.post("/videos/generations", film), 202],
    ["music", () => payer.post("/music/generations", music), 202],
    ["upload", () => upload(payer, media.png), 200],
    ["delete", (fileId) => remove(payer, fileId), 200],
  ];

  test.for(databaseRefusals)(
    "the database (%s) is 503 on every route that writes, costs nothing, and is over by itself",
    { timeout: 240_000 },
    async ([, refusal]) => {
      const stored = (await upload(payer, media.png)).json.id;
      const before = [await payer.balance(), await creditsOf(payer)];
      const sent = media.world.play();
      mongo.rule = refusing(refusal);
      const refused = await Promise.all(
        writing.map(async ([name, ask]) => [name, refusalOf(await ask(stored))]),
      );
      expect(refused).toEqual(writing.map(([name]) => [name, unavailable]));
      // Requests that only read still work, and show that nothing was charged.
      expect([await payer.balance(), await creditsOf(payer)]).toEqual(before);
      for (const path of ["/models", "/jobs", "/files", `/files/${stored}`]) {
        expect((await payer.get(path)).status).toBe(200);
      }
      expect((await download(payer, `/files/${stored}/content`)).status).toBe(200);
      expect(sent).toEqual([]);
      expect([asked("POST /audio/speech"), asked("POST /images/generations")]).toEqual([0, 0]);
      await until(
        "it to show",
        async () => (await readiness()) === "503 the database does not answer",
        patience,
      );

      mongo.rule = () => "pass";
      await untilReady();
      for (const [name, ask, status] of writing) {
        expect([name, (await ask(stored)).status]).toEqual([name, status]);
      }
    },
  );

  test("what runs while the database fills up is finished, and charged once, when it takes writes", {
    timeout: 240_000,
  }, async () => {
    const held = heldImages(media.png);
    media.media.always("POST /images/generations", held.behaviour);
    const job = await submit(payer, "images", image);
    await until("the job's request", () => asked("POST /images/generations") === 1, patience);
    media.world.play({ kind: "ok", break: { how: "hang", after: 1 } });
    const stream = await payer.open("/responses", { ...text, max_output_tokens: 4_000 });
    await stream.until(({ name }) => name === "response.output_text.delta");
    const { reserved } = await payer.balance();
    expect(reserved).toBeGreaterThan(0);

    mongo.rule = refusing(outOfSpace);
    held.open();
    stream.leave();
    await until(
      "it to show",
      async () => (await readiness()) === "503 the database does not answer",
      patience,
    );
    expect((await payer.balance()).reserved).toBe(reserved);

    mongo.rule = () => "pass";
    expect(await ended(payer, job)).toMatchObject({ status: "completed" });
    expect(asked("POST /images/generations")).toBe(1);
    expect((await untilFree()).available).toBe(999);
    const paid = await until(
      "the stream's end",
      async () => {
        const balance = await payer.balance();
        return balance.reserved === 0 ? balance : undefined;
      },
      patience,
    );
    expect(paid.monthSpend).toBeGreaterThan(0);
    expect(paid.available).toBe(10_000_000 - paid.monthSpend);
  });

  test.for(storeRefusals)(
    "the store of files ($status $code) loses no image that was paid for, and is over by itself",
    { timeout: 240_000 },
    async (refusal) => {
      const stored = (await upload(payer, media.png)).json.id;
      const before = await payer.balance();
      const sent = media.world.play();
      s3.refusal = refusal;
      const job = await submit(payer, "images", image);
      // The bytes of the first image are stored already, so a reference to it would share them.
      const another = await samplePng(96, 64);
      const [uploaded, spoken, answered, referring] = await Promise.all([
        upload(payer, media.png),
        payer.post("/speech/generations", speech),
        payer.post("/responses", text),
        payer.post("/images/generations", {
          ...image,
          input_reference: {
            image_url: `data:image/png;base64,${another.toString("base64")}`,
          },
        }),
      ]);
      expect([uploaded, spoken, referring].map(refusalOf)).toEqual(Array(3).fill(unavailable));
      // Text needs no files.
      expect([answered.status, sent.length]).toEqual([200, 1]);
      await until("a write to be refused", () => s3.refused > 0, patience);
      expect((await download(payer, `/files/${stored}/content`)).status).toBe(200);

      s3.refusal = undefined;
      const done = await ended(payer, job);
      expect(done).toMatchObject({ status: "completed" });
      const { url } = done.images[0];
      expect((await download(payer, pathOf(payer, url))).bytes.equals(media.png)).toBe(true);
      expect(asked("POST /images/generations")).toBe(1);
      await untilReady();
      expect((await upload(payer, media.png)).status).toBe(200);
      const credits = await untilFree();
      expect(credits.available).toBe(999);
      const after = await payer.settled();
      const cost = answered.json.usage.input_tokens + 4 * answered.json.usage.output_tokens;
      expect(before.available - after.available).toBe(cost);
    },
  );
});
