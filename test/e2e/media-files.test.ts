import sharp from "sharp";
import { afterAll, describe, expect, test } from "vitest";
import { type Asked, refusalOf } from "./caller.ts";
import { download, remove, sha256Of, startMediaWorld, upload } from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

const { world, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const jpeg = await sharp(png).resize(40, 30).jpeg().toBuffer();
const webp = await sharp(png).resize(32, 20).webp().toBuffer();
const replayed = ({ headers }: Asked) => headers.get("idempotency-replayed");
const notFound = "404 not_found_error file_not_found null";
const ids = ({ json }: Asked) => json.data.map(({ id }: { id: string }) => id);

describe("an upload", () => {
  test.each([
    ["image/png", png, "boat.png", 64, 64],
    ["image/jpeg", jpeg, "boat.jpeg", 40, 30],
    ["image/webp", webp, "boat.txt", 32, 20],
  ])("of %s is stored, shown, downloaded and deleted", async (mimeType, bytes, name, ...sides) => {
    const caller = await world.caller();
    const { status, json: file } = await upload(caller, bytes, { name });
    expect(status).toBe(200);
    const [width, height] = sides;
    expect(file).toEqual({
      ...{ id: expect.stringMatching(/^file_[a-z0-9]+$/), object: "file", bytes: bytes.length },
      ...{ filename: name, purpose: "vision", status: "processed", expires_at: null },
      ...{ created_at: expect.any(Number), mimeType, sha256: sha256Of(bytes), width, height },
    });
    const path = `/files/${file.id}`;
    expect((await caller.get(path)).json).toEqual(file);
    const got = await download(caller, `${path}/content?download=1`);
    expect(got.bytes.equals(bytes)).toBe(true);
    expect(Object.fromEntries(got.headers)).toMatchObject({
      "content-type": mimeType,
      etag: `"${file.sha256}"`,
      "x-content-type-options": "nosniff",
      "content-disposition": expect.stringMatching(/^attachment; filename="boat\.[\w.]+"$/),
    });
    const part = await download(caller, `${path}/content`, { headers: { range: "bytes=2-5" } });
    expect([part.status, part.bytes]).toEqual([206, bytes.subarray(2, 6)]);

    const gone = await remove(caller, file.id);
    expect([gone.status, gone.json]).toEqual([200, { id: file.id, object: "file", deleted: true }]);
    for (const asked of [path, `${path}/content`]) {
      expect(refusalOf(await caller.get(asked))).toBe(notFound);
    }
    expect(refusalOf(await remove(caller, file.id))).toBe(notFound);
    expect((await caller.get("/files")).json.data).toEqual([]);
  });

  test("keeps a harmless name alone", async () => {
    const caller = await world.caller();
    const { json } = await upload(caller, png, { name: '../../etc/"pass\u202ewd".png' });
    expect(json.filename).not.toMatch(/[/\u202e]/);
    const { headers } = await download(caller, `/files/${json.id}/content`);
    expect(headers.get("content-disposition")).toMatch(
      /^inline; filename="[\w.-]+\.png"; filename\*=UTF-8''[\w.%-]+\.png$/,
    );
  });

  test("keeps a name in any script, also one of filename*", async () => {
    const caller = await world.caller();
    const name = "Bild ä 图片 🦊.png";
    const encoded = encodeURIComponent(name);
    const { json: simple } = await upload(caller, png, { name });
    const part = (more: string) => `--x\r\ncontent-disposition: form-data; name=${more}\r\n\r\n`;
    const names = `filename="Bild.png"; filename*=UTF-8''${encoded}`;
    const form = [`${part('"purpose"')}vision\r\n`, part(`"file"; ${names}`), png, "\r\n--x--\r\n"];
    const response = await fetch(`${caller.baseUrl}/files`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${caller.key}`,
        "content-type": "multipart/form-data; boundary=x",
      },
      body: Buffer.concat(form.map((piece) => Buffer.from(piece))),
    });
    const exact = (await response.json()) as { id: string; filename: string };
    for (const { id, filename } of [simple, exact]) {
      expect(filename).toBe(name);
      const { headers } = await download(caller, `/files/${id}/content?download=1`);
      expect(headers.get("content-disposition")).toBe(
        `attachment; filename="Bild_.png"; filename*=UTF-8''${encoded}`,
      );
    }
  });

  test("belongs to the account: its other keys have it, other accounts do not", async () => {
    const caller = await world.caller();
    const { json: file } = await upload(caller, png);
    const sibling = await world.withKey(caller, {});
    expect((await sibling.get(`/files/${file.id}`)).json).toEqual(file);
    const stranger = await world.caller();
    const never = await caller.get("/files/file_000000000000000000000000");
    expect(refusalOf(never)).toBe(notFound);
    for (const path of [`/files/${file.id}`, `/files/${file.id}/content`]) {
      const answer = await stranger.get(path);
      expect([answer.status, answer.text]).toEqual([404, never.text]);
    }
    expect(refusalOf(await remove(stranger, file.id))).toBe(notFound);
    expect((await stranger.get("/files")).json.data).toEqual([]);
    expect((await caller.get(`/files/${file.id}`)).status).toBe(200);
  });
});

describe("what is refused", () => {
  const gif = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");
  test.each([
    ["a GIF", gif, {}, "invalid_image file"],
    ["half a picture", png.subarray(0, png.length / 2), {}, "invalid_image file"],
    ["text that says it is one", Buffer.from("\x89PNG\r\n\x1a\nno"), {}, "invalid_image file"],
    ["nothing", Buffer.alloc(0), {}, "invalid_image file"],
    ["no purpose", png, { purpose: undefined }, "missing_required_parameter purpose"],
    ["an empty purpose", png, { purpose: "" }, "missing_required_parameter purpose"],
    ["a long purpose", png, { purpose: "p".repeat(65) }, "invalid_value purpose"],
  ])("%s", async (_, bytes, options, want) => {
    const caller = await world.caller();
    const answer = await upload(caller, bytes, options);
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${want}`);
    expect((await caller.get("/files")).json.data).toEqual([]);
  });

  test("a form that is none", async () => {
    const caller = await world.caller();
    const json = await caller.post("/files", { purpose: "vision" });
    expect(refusalOf(json)).toBe("415 invalid_request_error unsupported_media_type null");
    const headers = { "content-type": "multipart/form-data; boundary=x" };
    const purpose = '--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nvision\r\n';
    const noFile = await caller.post("/files", `${purpose}--x--\r\n`, { headers });
    expect(refusalOf(noFile)).toBe("400 invalid_request_error missing_required_parameter file");
    const cut = await caller.post("/files", purpose, { headers });
    expect(cut.status).toBe(400);
  });
});

test("the list: newest first or oldest, by pages, by purpose", async () => {
  const caller = await world.caller();
  const made: string[] = [];
  for (const purpose of ["vision", "vision", "style", "vision", "style"]) {
    const { json } = await upload(caller, png, { purpose });
    made.push(json.id);
    await world.later(1_000);
  }
  const newest = made.toReversed();
  const all = await caller.get("/files");
  expect(ids(all)).toEqual(newest);
  expect(all.json).toMatchObject({ object: "list", has_more: false });
  // A file counts with its space on the disk: whole blocks, and its record.
  const taken = (json: { bytes: number }) => Math.ceil(json.bytes / 4096) * 4096 + 4096;
  const usedBytes = all.json.data.map(taken).reduce((sum: number, one: number) => sum + one);
  expect(all.json.quota).toEqual({ usedBytes, limitBytes: 2 ** 30, files: 5 });
  expect((await (await world.caller()).get("/files")).json.quota).toMatchObject({
    usedBytes: 0,
    files: 0,
  });
  expect(all.json).toMatchObject({ first_id: newest[0], last_id: newest[4] });
  const first = await caller.get("/files?limit=2");
  expect([ids(first), first.json.has_more]).toEqual([newest.slice(0, 2), true]);
  const second = await caller.get(`/files?limit=2&after=${first.json.last_id}`);
  expect([ids(second), second.json.has_more]).toEqual([newest.slice(2, 4), true]);
  const third = await caller.get(`/files?limit=2&after=${second.json.last_id}`);
  expect([ids(third), third.json.has_more]).toEqual([newest.slice(4), false]);
  expect(ids(await caller.get("/files?order=asc"))).toEqual(made);
  expect(ids(await caller.get("/files?purpose=style"))).toEqual([made[4], made[2]]);
  for (const [query, refusal] of [
    ["limit=0", "invalid_value limit"],
    ["limit=x", "invalid_type limit"],
    ["order=up", "invalid_value order"],
  ]) {
    const answer = await caller.get(`/files?${query}`);
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${refusal}`);
  }
});

describe("idempotency", () => {
  test("twenty equal uploads at once are one file", async () => {
    const caller = await world.caller();
    const options = { idempotencyKey: "k" };
    const all = Array.from({ length: 20 }, () => upload(caller, png, options));
    const answers = await Promise.all(all);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter((one) => replayed(one) === "true")).toHaveLength(19);
    expect((await caller.get("/files")).json.data).toHaveLength(1);
  });

  test("other bytes, or another field, are 422", async () => {
    const caller = await world.caller();
    const options = { idempotencyKey: "k" };
    await upload(caller, png, options);
    for (const other of [
      upload(caller, jpeg, options),
      upload(caller, png, { ...options, purpose: "style" }),
      upload(caller, png, { ...options, name: "other.png" }),
    ]) {
      const refusal = "422 idempotency_error idempotency_key_reused null";
      expect(refusalOf(await other)).toBe(refusal);
    }
  });

  test("a refused upload frees its key", async () => {
    const caller = await world.caller();
    const options = { idempotencyKey: "k" };
    expect((await upload(caller, Buffer.from("no"), options)).status).toBe(400);
    const answer = await upload(caller, png, options);
    expect([answer.status, replayed(answer)]).toEqual([200, null]);
  });
});
