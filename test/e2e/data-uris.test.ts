import { afterAll, describe, expect, test } from "vitest";
import { formOf } from "../support/scripted-media-upstream.ts";
import { chat } from "./catalog.ts";
import { asked, inputAudio, inputFile, pdf, said, wav } from "./file-parts.ts";
import { ended, sha256Of, startMediaWorld, submit } from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

// Data URIs in all forms that programs write and browsers read. The upstream gets the canonical form.

const reader = chat("reader", {
  ...{ inputModalities: ["text", "image", "pdf", "audio"], upstreamModel: "up-model" },
  ...{ maxInputTokens: 200_000, audioTokensPerSecond: 20 },
});
const { world, media, png, ...rest } = await startMediaWorld({
  models: [reader, chat("reader-legacy", { ...reader, id: "reader-legacy", upstream: "legacy" })],
});
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const caller = await world.caller({ credits: 1_000n });

const base64 = (bytes: Buffer) => bytes.toString("base64");
const bare = (bytes: Buffer) => base64(bytes).replace(/=+$/, "");
const inUrlAlphabet = (bytes: Buffer) => bare(bytes).replaceAll("+", "-").replaceAll("/", "_");
const inLines = (bytes: Buffer, end: string) => base64(bytes).replace(/.{1,76}/g, `$&${end}`);
const uri = (type: string, digits: string) => `data:${type};base64,${digits}`;

/** Ways to write base64. */
const digits: [name: string, write: (bytes: Buffer) => string][] = [
  ["in lines", (bytes) => inLines(bytes, "\n")],
  ["in lines of Windows", (bytes) => inLines(bytes, "\r\n")],
  ["behind white space", (bytes) => ` \t${base64(bytes)} `],
  ["without padding", bare],
  ["in the URL alphabet", inUrlAlphabet],
];
/** Ways to write data URIs. */
const uris: [name: string, write: (type: string, bytes: Buffer) => string][] = [
  ...digits.map(([name, write]): (typeof uris)[number] => [
    name,
    (type, bytes) => uri(type, write(bytes)),
  ]),
  ["with a charset", (type, bytes) => uri(`${type};charset=utf-8`, base64(bytes))],
  ["with a name", (type, bytes) => uri(`${type};name=fox.png`, base64(bytes))],
  ["with two parameters", (type, bytes) => uri(`${type}; a="b c"; name=ü.png`, base64(bytes))],
  ["percent-encoded", (type, bytes) => uri(type, encodeURIComponent(inLines(bytes, "\r\n")))],
  ["behind a line break", (type, bytes) => `\n${uri(type.toUpperCase(), base64(bytes))}`],
];

describe.each(uris)("a data URI %s", (_, write) => {
  test("of an image in a request of text", async () => {
    const seen = world.play();
    const part = (image_url: string) => ({ type: "input_image", image_url });
    const answer = await caller.post("/responses", asked(part(write("image/png", png))));
    expect(answer.status).toBe(200);
    expect(seen[0]?.body.input[0].content[1]).toEqual(part(uri("image/png", base64(png))));
  });

  test("of a PDF", async () => {
    const file_data = write("application/pdf", pdf);
    const seen = world.play();
    const answer = await caller.post("/responses", asked(inputFile(pdf, { file_data })));
    expect(answer.status).toBe(200);
    expect(seen[0]?.body.input[0].content[1]).toEqual(inputFile(pdf));
    const file = { filename: "a.pdf", file_data };
    for (const model of ["reader", "reader-legacy"]) {
      const body = { ...said({ type: "file", file }), model };
      expect((await caller.post("/chat/completions", body)).status).toBe(200);
    }
    expect(seen[1]?.body.input.at(-1).content[1]).toEqual(inputFile(pdf));
    expect(seen[2]?.body.messages.at(-1).content[1].file.file_data).toBe(
      uri("application/pdf", base64(pdf)),
    );
  });

  test("of a reference", async () => {
    const input_reference = { image_url: write("image/png", png) };
    const image = { model: "scripted-image", prompt: "a boat", input_reference };
    const video = { model: "svc-video-1-5", prompt: "waves", input_reference };
    media.requests.length = 0;
    for (const [area, body] of [
      ["images", image],
      ["videos", video],
    ] as const) {
      const job = await ended(caller, await submit(caller, area, body));
      expect(job).toMatchObject({ status: "completed" });
    }
    const [edit] = media.seen("POST /images/edits");
    const sent = edit && (await formOf(edit)).get("image");
    if (!(sent instanceof File)) throw new Error("no file was sent");
    expect(Buffer.from(await sent.arrayBuffer()).equals(png)).toBe(true);
    const { json } = await caller.get("/files");
    expect(json.data).toMatchObject([{ bytes: png.length, sha256: sha256Of(png) }]);
  });
});

describe.each(digits)("base64 %s", (_, write) => {
  test("of a sound, and of what a model made", async () => {
    const seen = world.play();
    const sound = { type: "input_audio", input_audio: { data: write(wav), format: "wav" } };
    const made = (result: string) => ({
      ...{ type: "image_generation_call", id: "ig_1", status: "completed" },
      result,
    });
    const body = asked(sound);
    const input = [made(write(png)), ...body.input];
    expect((await caller.post("/responses", { ...body, input })).status).toBe(200);
    expect(seen[0]?.body.input).toMatchObject([made(base64(png)), {}]);
    expect(seen[0]?.body.input[1].content[1]).toEqual(inputAudio(wav));
  });
});

test("no form of it counts as text", async () => {
  world.play();
  const large = Buffer.concat([png, Buffer.alloc(256 * 1024)]);
  const held = async (image_url: string) => {
    const body = asked({ type: "input_image", image_url });
    const { status, json } = await caller.post("/responses/input_tokens", body);
    expect(status).toBe(200);
    return json.input_tokens;
  };
  const usual = await held(uri("image/png", base64(large)));
  for (const [, write] of uris) {
    expect(await held(write("image/png", large))).toBeLessThan(usual + 30);
  }
});

test("what is no base64 is still none", async () => {
  const seen = world.play();
  for (const wrong of ["A", "AAAA=", "AA=A", "AAAA*", "AA\u00a0AA", "AAAA%", "%zzAA", ""]) {
    const part = { type: "input_image", image_url: uri("image/png", wrong) };
    const { status, json } = await caller.post("/responses", asked(part));
    expect([wrong, status, json.error.code]).toEqual([wrong, 400, "invalid_image"]);
  }
  expect(seen).toHaveLength(0);
});
