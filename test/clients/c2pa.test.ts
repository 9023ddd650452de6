import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readOrigin } from "#kit/provenance/index.ts";
import { version } from "../../services/host/version.ts";
import { sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import type { Caller } from "../e2e/caller.ts";
import {
  type Area,
  type Document,
  download,
  ended,
  type MediaWorld,
  startMediaWorld,
  submit,
  upload,
} from "../e2e/media-world.ts";
import { isOneProcess } from "../e2e/world.ts";
import { findBackend } from "../support/backends.ts";
import {
  type CertificateFolder,
  certificateFolder,
  noCertificates,
} from "../support/certificates.ts";
import { formOf } from "../support/scripted-media-upstream.ts";
import { ownBucket } from "../support/stores.ts";

const run = promisify(execFile);
/** A Python that has C2PA's own library. By default the one on the path. */
const python = process.env.PYTHON ?? "python3";
const script = fileURLToPath(new URL("c2pa_client.py", import.meta.url));
const noLibrary = await run(python, ["-c", "import c2pa"]).then(
  () => undefined,
  () =>
    `needs \`${python} -c "import c2pa"\` to work (pip install c2pa-python; PYTHON names another)`,
);
const notHere = isOneProcess ? undefined : "needs a world in one process";
const why = noLibrary ?? noCertificates ?? notHere;
if (why !== undefined) process.stderr.write(`skipped: C2PA's own library ${why}\n`);

const kinds = [
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["mp4", "video/mp4"],
] as const;

/** A folder with plain files, and with copies that C2PA's own library signed. */
async function sampleFolder(stack: AsyncDisposableStack) {
  const folder: CertificateFolder = stack.use(await certificateFolder());
  const authority = await folder.authority();
  const pair = await authority.issueSigner("Example Studio");
  const png = await samplePng(64, 64);
  const at = (name: string) => join(folder.path, name);
  await writeFile(at("ca.pem"), authority.ca);
  await writeFile(at("chain.pem"), pair.cert);
  await writeFile(at("key.pem"), pair.key);
  await writeFile(at("plain.png"), png);
  await writeFile(at("plain.jpg"), await sharp(png).jpeg().toBuffer());
  await writeFile(at("plain.mp4"), sampleMp4({ width: 854, height: 480 }));
  await run(python, [script, "sign", folder.path]);
  return { path: folder.path, at, pair };
}

const s3 = await findBackend("s3");
const stores = [
  { name: "files in a folder", note: "", s3: undefined },
  { name: "files in an S3 store", note: s3.note, s3: s3.url },
];

describe.each(stores)("C2PA's own library, unmodified, with $name $note", (store) => {
  const skipped = why ?? (store.note === "" ? undefined : store.note);
  const stack = new AsyncDisposableStack();
  let samples: Awaited<ReturnType<typeof sampleFolder>>;
  let made: MediaWorld;
  let caller: Caller;
  beforeAll(async () => {
    if (skipped !== undefined) return;
    samples = await sampleFolder(stack);
    const env = store.s3 ? { GENMESH_BLOBS_URL: ownBucket(stack, store.s3, "c2pa") } : {};
    const { cert: certificate } = samples.pair;
    const contentCredentials = { certificate, keyFile: samples.at("key.pem") };
    made = stack.use(await startMediaWorld({ env, contentCredentials }));
    caller = await made.world.caller({ credits: 1_000n });
  });
  afterAll(() => stack.disposeAsync());
  const tested = test.skipIf(skipped !== undefined);

  const outputOf = async (area: Area, body: object): Promise<Buffer> => {
    const job = await ended(caller, await submit(caller, area, body));
    expect(job).toMatchObject({ status: "completed" });
    const [file] = (job.images ?? job.videos) as Document[];
    return (await download(caller, file.url)).bytes;
  };
  const make = async (suffix: string, bytes: Buffer): Promise<Buffer> => {
    const { outputs } = made.media.wording;
    if (suffix !== "mp4") outputs.images = [bytes];
    else outputs.video = bytes;
    const asked = { prompt: "a boat" };
    return suffix === "mp4"
      ? outputOf("videos", { ...asked, model: "svc-video-1-5" })
      : outputOf("images", { ...asked, model: "scripted-image" });
  };

  tested.each(kinds)("a %s that an upstream signed stays byte for byte", async (suffix, type) => {
    const signed = await readFile(samples.at(`signed.${suffix}`));
    expect((await make(suffix, signed)).equals(signed)).toBe(true);
    expect(readOrigin(signed, type)).toEqual({
      ...{ generator: "someone else 7", signer: "Example Studio", issuer: "authority" },
      ...{ madeByAi: true, madeAtMs: Date.parse("2026-03-04T05:06:07Z") },
    });
  });

  tested.each(["png", "jpg"])(
    "a signed %s survives as an upload and a reference",
    async (suffix) => {
      const signed = await readFile(samples.at(`signed.${suffix}`));
      const { json } = await upload(caller, signed, { name: `signed.${suffix}` });
      const { bytes } = await download(caller, `/files/${json.id}/content`);
      expect(bytes.equals(signed)).toBe(true);
      made.media.requests.length = 0;
      const input_reference = { file_id: json.id };
      await outputOf("images", { model: "scripted-image", prompt: "a boat", input_reference });
      const [edit] = made.media.seen("POST /images/edits");
      const sent = edit && (await formOf(edit)).get("image");
      if (!(sent instanceof File)) throw new Error("no file was sent");
      expect(Buffer.from(await sent.arrayBuffer()).equals(signed)).toBe(true);
    },
  );

  tested("believes what genmesh signs: PNG, JPEG and MP4", async () => {
    for (const [suffix] of kinds) {
      const plain = await readFile(samples.at(`plain.${suffix}`));
      await writeFile(samples.at(`made.${suffix}`), await make(suffix, plain));
    }
    const names = kinds.map(([suffix]) => `made.${suffix}`);
    const { stdout } = await run(python, [script, "read", samples.path, ...names]);
    const told = {
      state: "Trusted",
      generator: ["genmesh", version],
      signer: "Example Studio",
      actions: [["c2pa.created", "trainedAlgorithmicMedia"]],
      when: [expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)],
      labels: expect.arrayContaining(["c2pa.actions.v2"]),
    };
    expect(JSON.parse(stdout)).toEqual([told, told, told]);
    // A file that was changed afterwards is told apart.
    const changed = await readFile(samples.at("made.png"));
    changed.writeUInt8(changed.readUInt8(changed.length - 20) ^ 1, changed.length - 20);
    await writeFile(samples.at("made.png"), changed);
    const again = await run(python, [script, "read", samples.path, "made.png"]);
    expect(JSON.parse(again.stdout)).toMatchObject([{ state: "Invalid" }]);
  });
});
