import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { formOf } from "../support/scripted-media-upstream.ts";
import { refusalOf } from "./caller.ts";
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
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const open = await startMediaWorld({ env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" } });
const { world, media, png, ...rest } = await startMediaWorld();
afterAll(async () => {
  await rest[Symbol.asyncDispose]();
  await open[Symbol.asyncDispose]();
});
ownWorldOnly();
beforeEach(() => {
  if (isOwnWorld) media.requests.length = 0;
});

const path = "/videos/generations";
const usual = { model: "svc-video-1-5", prompt: "waves" };
const picture = { model: "scripted-image", prompt: "a boat" };
const dataUri = (bytes: Buffer, type = "image/png") =>
  `data:${type};base64,${bytes.toString("base64")}`;
const fields = ["input_reference", "input_reference.image_url", "input_reference.file_id"];
const [whole = "", url = "", file = ""] = fields;

describe("a reference", () => {
  test("by file_id makes image-to-video, and goes upstream byte for byte", async () => {
    const caller = await world.caller({ credits: 45n });
    const { json: uploaded } = await upload(caller, png);
    const sibling = await world.withKey(caller, {});
    const body = { ...usual, input_reference: { file_id: uploaded.id } };
    const job = await submit(sibling, "videos", body);
    expect(job).toMatchObject({ mode: "i2v", creditsReserved: 45, durationSeconds: 6 });
    expect(await ended(sibling, job)).toMatchObject({ status: "completed", creditsCharged: 45 });
    const [create] = media.seen("POST /videos");
    const sent = create && (await formOf(create)).get("input_reference");
    if (!(sent instanceof File)) throw new Error("no file was sent");
    expect(sent.type).toBe("image/png");
    expect(Buffer.from(await sent.arrayBuffer()).equals(png)).toBe(true);
  });

  test("by data URI is brought into the account's files, once for the same bytes", async () => {
    const caller = await world.caller({ credits: 10n });
    const input_reference = { image_url: dataUri(png) };
    for (let round = 0; round < 3; round++) {
      const job = await submit(caller, "images", { ...picture, input_reference });
      expect(await ended(caller, job)).toMatchObject({ status: "completed" });
    }
    expect(media.seen("POST /images/edits")).toHaveLength(3);
    const { json } = await caller.get("/files");
    expect(json.data).toHaveLength(1);
    const [imported] = json.data;
    expect(imported).toMatchObject({ bytes: png.length, sha256: sha256Of(png), width: 64 });
    const { bytes } = await download(caller, `/files/${imported.id}/content`);
    expect(bytes.equals(png)).toBe(true);
  });

  test("several keep their order: input_reference, then the others", async () => {
    const caller = await world.caller({ credits: 10n });
    const { json: uploaded } = await upload(caller, png);
    const body = {
      ...picture,
      input_reference: { file_id: uploaded.id },
      referenceFileIds: [uploaded.id],
    };
    expect(await ended(caller, await submit(caller, "images", body))).toMatchObject({
      status: "completed",
    });
    const [edit] = media.seen("POST /images/edits");
    expect(edit && (await formOf(edit)).getAll("image[]")).toHaveLength(2);
  });

  test("deleted while its job waits is used all the same", async () => {
    const caller = await world.caller({ credits: 10n });
    const { json: uploaded } = await upload(caller, png);
    const gate = Promise.withResolvers<void>();
    media.next("POST /images/edits", {
      kind: "custom",
      async handle(_, response) {
        await gate.promise;
        response.writeHead(500).end();
      },
    });
    const body = { ...picture, input_reference: { file_id: uploaded.id } };
    const job = await submit(caller, "images", body);
    expect((await remove(caller, uploaded.id)).status).toBe(200);
    gate.resolve();
    expect(await ended(caller, job)).toMatchObject({ status: "completed" });
    const again = await caller.post("/images/generations", body);
    expect(refusalOf(again)).toBe(`400 invalid_request_error reference_not_found ${file}`);
  });
});

describe("what is refused, without a credit", () => {
  const cut = dataUri(png.subarray(0, png.length / 2));
  test.each<[why: string, input_reference: unknown, code: string, param: string]>([
    ["both", { file_id: "file_1", image_url: cut }, "invalid_input_reference", whole],
    ["neither", {}, "invalid_input_reference", whole],
    ["one and a null", { file_id: "file_1", image_url: null }, "invalid_input_reference", whole],
    ["a property more, null", { image_url: cut, detail: null }, "invalid_input_reference", whole],
    ["a null", { file_id: null }, "invalid_input_reference", file],
    ["a list", [], "invalid_input_reference", whole],
    ["a property more", { file_id: "file_1", detail: "low" }, "invalid_input_reference", whole],
    ["a number", { file_id: 5 }, "invalid_input_reference", file],
    ["an empty id", { file_id: "" }, "invalid_input_reference", file],
    ["an object", { image_url: { url: cut } }, "invalid_input_reference", url],
    ["another scheme", { image_url: "ftp://example.com/a.png" }, "invalid_input_reference", url],
    ["a file of the machine", { image_url: "file:///etc/hosts" }, "invalid_input_reference", url],
    ["no URL", { image_url: "http://" }, "invalid_input_reference", url],
    ["text", { image_url: "data:text/plain;base64,aGk=" }, "invalid_input_reference", url],
    ["no base64", { image_url: "data:image/png,abc" }, "invalid_input_reference", url],
    ["an unknown file", { file_id: "file_of_nobody" }, "reference_not_found", file],
    ["half a picture", { image_url: cut }, "invalid_reference_image", url],
    ["no picture", { image_url: dataUri(Buffer.from("hi")) }, "invalid_reference_image", url],
    ["loopback", { image_url: `${media?.baseUrl}/a.png` }, "unsafe_reference_url", url],
    ["localhost", { image_url: "http://localhost/a.png" }, "unsafe_reference_url", url],
    ["loopback in hex", { image_url: "http://0x7f.1/a.png" }, "unsafe_reference_url", url],
    ["loopback of IPv6", { image_url: "http://[::1]/a.png" }, "unsafe_reference_url", url],
    ["mapped", { image_url: "http://[::ffff:10.0.0.1]/" }, "unsafe_reference_url", url],
    ["link-local", { image_url: "http://169.254.169.254/" }, "unsafe_reference_url", url],
    ["private", { image_url: "https://192.168.1.1/a.png" }, "unsafe_reference_url", url],
  ])("%s", async (_, input_reference, code, param) => {
    const caller = await world.caller({ credits: 50n });
    const answer = await caller.post(path, { ...usual, input_reference });
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${code} ${param}`);
    expect(Object.keys(answer.json)).toEqual(["error"]);
    expect(await creditsOf(caller)).toMatchObject({ available: 50, reserved: 0 });
    expect((await caller.get("/jobs")).json.data).toEqual([]);
    expect((await caller.get("/files")).json.data).toEqual([]);
    expect(media.requests).toEqual([]);
  });

  test("another account's file, at its place in the list", async () => {
    const [caller, stranger] = [await world.caller({ credits: 50n }), await world.caller()];
    const { json: theirs } = await upload(stranger, png);
    const { json: own } = await upload(caller, png);
    const body = { ...picture, referenceFileIds: [own.id, theirs.id] };
    expect(refusalOf(await caller.post("/images/generations", body))).toBe(
      "400 invalid_request_error reference_not_found referenceFileIds[1]",
    );
    expect(await creditsOf(caller)).toMatchObject({ available: 50, reserved: 0 });
  });

  test("one more than the model takes, before any is looked for", async () => {
    const caller = await world.caller({ credits: 50n });
    const body = { ...picture, referenceFileIds: ["a", "b", "c"] };
    const answer = await caller.post("/images/generations", body);
    expect(refusalOf(answer)).toBe(
      "400 invalid_request_error too_many_references referenceFileIds",
    );
    expect(answer.json.error.message).toMatch(/\b2\b/);
  });
});

describe("GENMESH_ALLOW_PRIVATE_REFERENCES", () => {
  const at = (name: string) => ({ image_url: `${open.media.baseUrl}/made/${name}` });

  test("lets a URL lead to this machine; the picture is fetched without our key", async () => {
    const caller = await open.world.caller({ credits: 10n });
    open.media.next("GET /made/*", {
      kind: "custom",
      handle: (_, response) => void response.end(open.png),
    });
    const body = { ...picture, input_reference: at("image_1.png") };
    const job = await submit(caller, "images", body);
    expect(await ended(caller, job)).toMatchObject({ status: "completed" });
    const [fetched, ...more] = open.media.seen("GET /made/*");
    expect(more).toEqual([]);
    expect(fetched?.headers.authorization).toBeUndefined();
    expect((await caller.get("/files")).json.data).toHaveLength(1);
  });

  test("but what is no picture is none", async () => {
    const caller = await open.world.caller({ credits: 10n });
    open.media.next("GET /made/*", { kind: "status", status: 404 });
    for (let round = 0; round < 2; round++) {
      const body = { ...picture, input_reference: at("image_2.png") };
      const answer = await caller.post("/images/generations", body);
      expect(refusalOf(answer)).toBe(`400 invalid_request_error invalid_reference_image ${url}`);
    }
    expect(await creditsOf(caller)).toMatchObject({ available: 10, reserved: 0 });
  });
});
