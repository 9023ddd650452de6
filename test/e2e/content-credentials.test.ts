import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { readOrigin } from "#kit/provenance/index.ts";
import { parseCatalog } from "../../services/catalog/parse.ts";
import { version } from "../../services/host/version.ts";
import { withPngChunk } from "../../services/kit/images/samples.fixture.ts";
import { askConsole, signIn } from "../edge/console-client.ts";
import { certificateFolder, noCertificates } from "../support/certificates.ts";
import { until } from "../support/until.ts";
import type { Caller } from "./caller.ts";
import { testCatalog } from "./catalog.ts";
import {
  type Area,
  type Document,
  download,
  ended,
  sha256Of,
  startMediaWorld,
  submit,
  upload,
} from "./media-world.ts";
import { oneProcessOnly } from "./world.ts";

await using stack = new AsyncDisposableStack();
const folder = noCertificates === undefined ? stack.use(await certificateFolder()) : undefined;
const authority = await folder?.authority();
const pair = await authority?.issueSigner("Example Studio");
const keyFile = join(folder?.path ?? "/none", "signer.key");
const putKey = () => writeFile(keyFile, pair?.key ?? "");
if (pair) await putKey();
const contentCredentials = { certificate: pair?.cert ?? "", keyFile };
const { world, media, png } = stack.use(await startMediaWorld(pair ? { contentCredentials } : {}));
const owned = stack.move();
afterAll(() => owned[Symbol.asyncDispose]());
oneProcessOnly();
beforeEach(({ skip }) => skip(pair === undefined, noCertificates));

const said = {
  ...{ generator: `genmesh ${version}`, signer: "Example Studio", issuer: "authority" },
  ...{ madeByAi: true, madeAtMs: expect.any(Number) },
};
const image = { model: "scripted-image", prompt: "a secret boat" };
const video = { model: "svc-video-1-5", prompt: "waves" };

/** Makes a file, and downloads it. Everything that is said of it has to fit its bytes. */
async function made(caller: Caller, area: Area, body: object): Promise<Buffer> {
  const job = await ended(caller, await submit(caller, area, body));
  expect(job).toMatchObject({ status: "completed" });
  const [file] = (job.images ?? job.videos) as Document[];
  const { bytes, headers } = await download(caller, file.url);
  const sha256 = sha256Of(bytes);
  expect(file).toMatchObject({ sizeBytes: bytes.length, sha256 });
  expect(headers.get("etag")).toBe(`"${sha256}"`);
  return bytes;
}

async function count(outcome: string): Promise<number> {
  const metrics = await (await fetch(`${world.opsUrl}/metrics`)).text();
  const lines = metrics.split("\n").filter((line) => line.startsWith("genmesh_media_marks_total{"));
  const mine = lines.filter((line) => line.includes(`outcome="${outcome}"`));
  return mine.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

describe("a made file", () => {
  test("says what made it: PNG, JPEG and MP4, and nothing of its caller", async () => {
    const caller = await world.caller({ credits: 100n });
    const before = await count("signed");
    const jpeg = await sharp(png).jpeg().toBuffer();
    media.wording.outputs.images = [png];
    const signedPng = await made(caller, "images", image);
    media.wording.outputs.images = [jpeg];
    const signedJpeg = await made(caller, "images", image);
    media.wording.outputs.images = [png];
    const signedMp4 = await made(caller, "videos", video);
    for (const [bytes, type] of [
      [signedPng, "image/png"],
      [signedJpeg, "image/jpeg"],
      [signedMp4, "video/mp4"],
    ] as const) {
      expect(readOrigin(bytes, type)).toEqual(said);
      for (const own of [caller.accountId, caller.keyId, "boat", "waves", "scripted"]) {
        expect(bytes.includes(own)).toBe(false);
      }
    }
    expect(await count("signed")).toBe(before + 3);
  });

  test("of the built-in models does not say that a trained model made it", async () => {
    const caller = await world.caller({ credits: 100n });
    const bytes = await made(caller, "images", { model: "small-image", prompt: "a boat" });
    expect(readOrigin(bytes, "image/png")).toEqual({ ...said, madeByAi: false });
  });

  test("that says so already stays byte for byte, and so does another type", async () => {
    const caller = await world.caller({ credits: 100n });
    const before = await count("has_one");
    const once = await made(caller, "images", image);
    media.wording.outputs.images = [once];
    expect((await made(caller, "images", image)).equals(once)).toBe(true);
    const film = await made(caller, "videos", video);
    const { outputs } = media.wording;
    const plain = outputs.video;
    outputs.video = film;
    expect((await made(caller, "videos", video)).equals(film)).toBe(true);
    outputs.video = plain;
    const webp = await sharp(png).webp().toBuffer();
    media.wording.outputs.images = [webp];
    expect((await made(caller, "images", image)).equals(webp)).toBe(true);
    media.wording.outputs.images = [png];
    expect(await count("has_one")).toBe(before + 2);
  });

  test("with a manifest is a reference like any other", async () => {
    const caller = await world.caller({ credits: 100n });
    const job = await ended(caller, await submit(caller, "images", image));
    const [{ id }] = job.images;
    const bytes = await made(caller, "images", { ...image, input_reference: { file_id: id } });
    expect(readOrigin(bytes, "image/png")).toEqual(said);
  });

  test("is stored as it came where it cannot be signed, and the operator hears of it", async () => {
    const caller = await world.caller({ credits: 200n });
    const before = await count("failed");
    await rm(keyFile);
    expect((await made(caller, "images", image)).equals(png)).toBe(true);
    expect(
      (await made(caller, "videos", video)).equals(Buffer.from(media.wording.outputs.video)),
    ).toBe(true);
    await writeFile(keyFile, (await authority?.issueSigner("another"))?.key ?? "");
    expect((await made(caller, "images", image)).equals(png)).toBe(true);
    // A new key counts at once.
    await putKey();
    expect(readOrigin(await made(caller, "images", image), "image/png")).toEqual(said);
    const twoDays = 2 * 24 * 3_600_000;
    world.setClock(twoDays);
    expect((await made(caller, "images", image)).equals(png)).toBe(true);
    world.setClock(-twoDays);
    expect(await count("failed")).toBe(before + 4);
    const told = world.log.filter((line) => line.includes("without content credentials"));
    expect(told.map((line) => JSON.parse(line).fault)).toEqual([
      ...["key_missing", "key_missing", "key", "certificate"],
    ]);
    expect(told.join("")).not.toContain("boat");
  });
});

describe("the console's server", () => {
  const port = () => Number(new URL(world.baseUrl).port);

  test("reads a file's words for whom the file itself is, and for nobody else", async () => {
    const caller = await world.caller({ credits: 100n });
    const job = await ended(caller, await submit(caller, "images", image));
    const [{ id }] = job.images;
    const path = `/console/api/v1/images/generations/${job.id}/files/${id}/origin`;
    const cookie = await signIn(port(), caller.key);
    const { status, json } = await askConsole(port(), path, { cookie });
    expect([status, json]).toEqual([
      200,
      {
        ...{ object: "console.file_origin", manifest: "read", generator: `genmesh ${version}` },
        ...{ signer: "Example Studio", issuer: "authority", madeByAi: true },
        madeAt: expect.stringMatching(/^\d{4}-/),
      },
    ]);
    const sibling = await world.withKey(caller, {});
    const never = path.replace(id, "file_00000000");
    const others = await signIn(port(), sibling.key);
    for (const [who, at] of [
      [others, path],
      [cookie, never],
    ] as const) {
      const refused = await askConsole(port(), at, { cookie: who });
      expect([refused.status, refused.json.error.code]).toEqual([404, "file_not_found"]);
    }
    expect((await askConsole(port(), path)).status).toBe(401);
    // The public API has no such route.
    const bearer = { authorization: `Bearer ${caller.key}` };
    const missing = await askConsole(port(), path.replace("/console/api", ""), { headers: bearer });
    expect(missing.status).toBe(404);
  });

  test("says of an upload without a manifest that it has none, and of a broken one that it cannot be read", async () => {
    const caller = await world.caller({ credits: 100n });
    const cookie = await signIn(port(), caller.key);
    const originOf = async (bytes: Buffer) => {
      const { json } = await upload(caller, bytes);
      return askConsole(port(), `/console/api/v1/files/${json.id}/origin`, { cookie });
    };
    expect((await originOf(png)).json).toMatchObject({ manifest: "none", madeByAi: false });
    expect((await originOf(await sharp(png).webp().toBuffer())).json.manifest).toBe("none");
    const broken = withPngChunk(png, "caBX", Buffer.from("no boxes at all"));
    expect((await originOf(broken)).json).toMatchObject({ manifest: "unreadable", signer: null });
  });
});

describe("a catalog", () => {
  const faultsOf = (credentials: object, nowMs?: number) => {
    const addresses = {
      main: "http://127.0.0.1:1",
      backup: "http://127.0.0.1:1",
      nowhere: "http://127.0.0.1:1",
    };
    const text = JSON.stringify({ ...testCatalog(addresses), contentCredentials: credentials });
    return parseCatalog(text, undefined, nowMs).faults;
  };

  test("is refused with the place of a wrong or expired certificate", async () => {
    const now = Date.now();
    expect(faultsOf(contentCredentials, now)).toBeUndefined();
    expect(faultsOf({ ...contentCredentials, keyEnv: "KEY" }, now)).toMatchObject([
      { path: "contentCredentials", message: expect.stringMatching(/^must have one of/) },
    ]);
    const path = "contentCredentials.certificate";
    expect(faultsOf({ certificate: "none", keyEnv: "KEY" }, now)).toMatchObject([
      { path, message: expect.stringMatching(/^has no certificate in PEM/) },
    ]);
    expect(faultsOf(contentCredentials, now + 3 * 24 * 3_600_000)).toMatchObject([
      { path, message: expect.stringMatching(/^was valid until/) },
    ]);
    const faulty = {
      ...contentCredentials,
      certificate: (await authority?.issue("example"))?.cert,
    };
    await world.writeCatalog((usual) => ({ ...usual, contentCredentials: faulty }));
    await until("the refusal of the catalog", () =>
      world.log.some((line) => line.includes(path) && line.includes("is not issued for")),
    );
  });
});
