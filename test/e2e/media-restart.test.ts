import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import sharp from "sharp";
import { afterAll, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { quotaBytesOf } from "../../services/media/files/quota.ts";
import { type Asked, type Caller, refusalOf } from "./caller.ts";
import {
  creditsOf,
  download,
  ended,
  remove,
  sha256Of,
  startMediaWorld,
  submit,
  upload,
} from "./media-world.ts";
import { oneProcessOnly } from "./world.ts";

const folder = await mkdtemp(join(tmpdir(), "genmesh-restart-"));
afterAll(() => rm(folder, { recursive: true, force: true }));
oneProcessOnly();

/** The contract's quota of an account. */
const quotaBytes = 1024 ** 3;
const start = (name: string) => startMediaWorld({ env: { GENMESH_DATA_DIR: join(folder, name) } });
const replayed = ({ status, headers }: Asked) => [status, headers.get("idempotency-replayed")];
const options = { idempotencyKey: "k" };

test("what was accepted before a restart is finished, charged once, and still replayed", async () => {
  const image = { model: "small-image", prompt: "a boat" };
  const speech = { model: "scripted-speech", input: "Hi", voice: "alloy" };
  let payer: Caller;
  let jobs: { id: string }[];
  let [spoken, stored, done] = ["", "", ""];
  {
    await using before = await start("jobs");
    const { world, png } = before;
    payer = await world.caller({ credits: 20n });
    const first = await submit(payer, "images", image, options);
    done = JSON.stringify(await ended(payer, first)).replaceAll(world.baseUrl, "");
    spoken = (await payer.post("/speech/generations", speech, options)).json.id;
    stored = (await upload(payer, png, options)).json.id;
    jobs = await Promise.all(Array.from({ length: 4 }, () => submit(payer, "images", image)));
  }
  await using after = await start("jobs");
  const { world, png } = after;
  const caller = world.holding(payer.key);
  const again = await caller.post("/images/generations", image, options);
  expect(replayed(again)).toEqual([202, "true"]);
  expect(again.text.replaceAll(world.baseUrl, "")).toBe(done);
  const [output] = again.json.images;
  expect(sha256Of((await download(caller, output.url)).bytes)).toBe(output.sha256);
  const other = await caller.post("/images/generations", { ...image, n: 2 }, options);
  expect(refusalOf(other)).toBe("422 idempotency_error idempotency_key_reused null");

  for (const { id } of jobs) {
    const statusUrl = `${world.baseUrl}/images/generations/${id}`;
    const job = await ended(caller, { statusUrl });
    expect(job).toMatchObject({ status: "completed", creditsCharged: 1 });
    expect((await download(caller, job.images[0].url)).status).toBe(200);
  }
  expect(await creditsOf(caller)).toEqual({
    ...{ available: 15, reserved: 0, spendable: 15, monthSpent: 5 },
  });

  const saidAgain = await caller.post("/speech/generations", speech, options);
  expect([...replayed(saidAgain), saidAgain.json.id]).toEqual([200, "true", spoken]);
  expect((await download(caller, saidAgain.json.audio.url)).status).toBe(200);
  expect(after.media.requests).toEqual([]);
  expect(await caller.balance()).toMatchObject({ reserved: 0, monthSpend: 5 });
  const storedAgain = await upload(caller, png, options);
  expect([...replayed(storedAgain), storedAgain.json.id]).toEqual([200, "true", stored]);
});

test("the quota: exact under concurrency, for uploads and imports, and freed at once", async () => {
  let [secret, accountId] = ["", ""];
  {
    await using before = await start("quota");
    const caller = await before.world.caller();
    await upload(caller, before.png);
    ({ key: secret, accountId } = caller);
  }
  const picture = await sharp({ create: { width: 9, height: 9, channels: 3, background: "#111" } })
    .png()
    .toBuffer();
  // The test writes the used bytes into the database, because uploads of a gibibyte would take too long.
  const room = quotaBytesOf({ sizeBytes: picture.length }) * 3 - 1;
  const db = new DatabaseSync(join(folder, "quota", "genmesh.sqlite"));
  const set = db.prepare("UPDATE media_quota SET used_bytes = ? WHERE account_id = ?");
  expect(set.run(quotaBytes - room, accountId).changes).toBe(1);
  db.close();

  await using after = await start("quota");
  const { world, png } = after;
  const caller = world.holding(secret);
  const all = Array.from({ length: 12 }, () => upload(caller, picture));
  const answers = await Promise.all(all);
  const taken = answers.filter(({ status }) => status === 200);
  expect(taken).toHaveLength(2);
  const full = "400 invalid_request_error upload_quota_exceeded file";
  expect(new Set(answers.filter((one) => !taken.includes(one)).map(refusalOf))).toEqual(
    new Set([full]),
  );
  expect((await caller.get("/files")).json.data).toHaveLength(3);

  await world.admin.billing.grant({
    accountId,
    unit: Unit.CREDITS,
    amount: 9n,
    operationId: "credits",
  });
  const body = (bytes: Buffer) => ({
    model: "scripted-image",
    prompt: "a boat",
    input_reference: { image_url: `data:image/png;base64,${bytes.toString("base64")}` },
  });
  const inverted = await sharp(png).negate().png().toBuffer();
  const refused = await caller.post("/images/generations", body(inverted));
  expect(refusalOf(refused)).toBe(
    "400 invalid_request_error upload_quota_exceeded input_reference.image_url",
  );
  expect(await creditsOf(caller)).toMatchObject({ available: 9, reserved: 0 });

  expect((await remove(caller, taken[0]?.json.id)).status).toBe(200);
  expect((await upload(caller, picture)).status).toBe(200);
  expect(refusalOf(await upload(caller, picture))).toBe(full);
});
