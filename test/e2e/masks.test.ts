import OpenAI, { toFile } from "openai";
import sharp from "sharp";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { formOf } from "../support/scripted-media-upstream.ts";
import type { Caller } from "./caller.ts";
import { creditsOf, ended, sha256Of, startMediaWorld, submit, upload } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const masked = {
  ...{ id: "masked-image", kind: "image", creditPrice: 3, upstream: "scripted" },
  ...{ sizes: ["64x64"], maxReferences: 2, masks: true },
};
const { world, media, png, ...rest } = await startMediaWorld({ models: [masked] });
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const edits = "POST /images/edits";
const model = "masked-image";
const prompt = "a boat in its place";
const maskOf = (width: number, height = width) =>
  sharp({ create: { width, height, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } })
    .png()
    .toBuffer();
const dataUri = (bytes: Buffer, type = "png") =>
  `data:image/${type};base64,${bytes.toString("base64")}`;

let caller: Caller;
beforeEach(async () => {
  if (!isOwnWorld) return;
  caller = await world.caller({ credits: 20n });
  media.requests.length = 0;
});

/** The digests of the files of an edit that the upstream got, by their fields. */
async function filesSent() {
  const [seen] = media.seen(edits);
  const form = await formOf(seen ?? expect.unreachable("nothing was sent"));
  const digests = [];
  for (const [name, value] of form.entries()) {
    if (typeof value === "string") continue;
    digests.push([name, sha256Of(Buffer.from(await value.arrayBuffer()))]);
  }
  return digests;
}

describe("a mask", () => {
  test("of client.images.edit reaches the upstream, and is charged as an edit", async () => {
    const mask = await maskOf(64);
    const client = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 0 });
    const file = (bytes: Buffer, name: string) => toFile(bytes, name, { type: "image/png" });
    const answer = await client.images.edit({
      ...{ model, prompt, image: await file(png, "a.png"), mask: await file(mask, "m.png") },
    });
    expect(Buffer.from(answer.data?.[0]?.b64_json ?? "", "base64").equals(png)).toBe(true);
    expect(await filesSent()).toEqual([
      ["image", sha256Of(png)],
      ["mask", sha256Of(mask)],
    ]);
    expect(await creditsOf(caller)).toMatchObject({ available: 17, reserved: 0 });
  });

  test("belongs to the first of several images, as a file or a data URI", async () => {
    const mask = await maskOf(64);
    const { json: stored } = await upload(caller, png);
    const { json: storedMask } = await upload(caller, mask);
    const images = { input_reference: { image_url: dataUri(png) }, referenceFileIds: [stored.id] };
    for (const sent of [{ file_id: storedMask.id }, { image_url: dataUri(mask) }]) {
      media.requests.length = 0;
      await ended(caller, await submit(caller, "images", { model, prompt, ...images, mask: sent }));
      expect(await filesSent()).toEqual([
        ["image[]", sha256Of(png)],
        ["image[]", sha256Of(png)],
        ["mask", sha256Of(mask)],
      ]);
    }
  });

  test("is repeated with its job", async () => {
    const mask = await maskOf(64);
    media.always(edits, { kind: "status", status: 400, code: "invalid_value" });
    const body = {
      ...{ model, prompt, input_reference: { image_url: dataUri(png) } },
      mask: { image_url: dataUri(mask) },
    };
    const failed = await ended(caller, await submit(caller, "images", body));
    expect(failed.status).toBe("failed");
    media.always(edits, undefined);
    media.requests.length = 0;
    const { job } = await world.admin.media.retryJob({ jobId: failed.id, operationId: "again-1" });
    await ended(caller, { statusUrl: failed.statusUrl.replace(failed.id, job?.jobId ?? "") });
    expect(await filesSent()).toEqual([
      ["image", sha256Of(png)],
      ["mask", sha256Of(mask)],
    ]);
  });

  test("that does not fit is refused, and costs nothing", async () => {
    const mask = await maskOf(64);
    const plain = await sharp(mask).removeAlpha().png().toBuffer();
    const palette = await sharp(mask).png({ palette: true }).toBuffer();
    const webp = await sharp(mask).webp().toBuffer();
    const image = { input_reference: { image_url: dataUri(png) } };
    const refused = async (more: object) => {
      const { status, json } = await caller.post("/images/generations", { model, prompt, ...more });
      return [status, json.error?.code, json.error?.param];
    };
    const url = (bytes: Buffer, type?: string) => ({ mask: { image_url: dataUri(bytes, type) } });
    const ofMask = [400, "invalid_reference_image", "mask.image_url"];
    expect(await refused({ ...image, ...url(await maskOf(64, 32)) })).toEqual(ofMask);
    expect(await refused({ ...image, ...url(plain) })).toEqual(ofMask);
    expect(await refused({ ...image, ...url(webp, "webp") })).toEqual(ofMask);
    expect(await refused(url(mask))).toEqual([400, "invalid_value", "mask"]);
    expect(await refused({ ...image, mask: "all of it" })).toEqual([
      ...[400, "invalid_input_reference", "mask"],
    ]);
    expect(await refused({ ...image, mask: { file_id: "file_none" } })).toEqual([
      ...[400, "reference_not_found", "mask.file_id"],
    ]);
    // Another key's upload is as none.
    const stranger = await world.caller({ credits: 20n });
    const { json: foreign } = await upload(stranger, mask);
    expect(await refused({ ...image, mask: { file_id: foreign.id } })).toEqual([
      ...[400, "reference_not_found", "mask.file_id"],
    ]);
    const other = { model: "scripted-image", ...image, ...url(mask) };
    expect(await refused(other)).toEqual([400, "unsupported_parameter", "mask"]);
    expect(media.requests).toEqual([]);
    expect(await creditsOf(caller)).toMatchObject({ available: 20, reserved: 0 });
    // Its palette has the alpha.
    const fits = await submit(caller, "images", { model, prompt, ...image, ...url(palette) });
    expect(await ended(caller, fits)).toMatchObject({ status: "completed" });
  });
});
