import sharp from "sharp";
import { afterAll, describe, expect, test } from "vitest";
import { noise } from "#kit/images/samples.fixture.ts";
import { wavOf } from "../../services/text/files/measuring/samples.fixture.ts";
import { refusalOf } from "./caller.ts";
import { asked, inputAudio, uriOf, withReaders } from "./file-parts.ts";
import { upload } from "./media-world.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// Refusals for size, at the sizes of the contract. Most of the time is for 20 MiB that are made, sent and read.

const world = await startWorld({ catalog: withReaders });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const mib = 1024 * 1024;
const large = await noise(1_500, 1_600).png({ compressionLevel: 0 }).toBuffer();
const caller = await world.caller();
const ask = (...parts: object[]) => caller.post("/responses", asked(...parts));

describe("images of a request", () => {
  const part = (bytes: Buffer) => ({ type: "input_image", image_url: uriOf(bytes, "image/png") });
  const refused = (code: string, index = 1) =>
    `400 invalid_request_error ${code} input[0].content[${index}].image_url`;

  test("of more than 50 megapixels is none", async () => {
    const huge = sharp({
      create: { width: 8_000, height: 6_300, channels: 3, background: "#456" },
    });
    expect(refusalOf(await ask(part(await huge.png().toBuffer())))).toBe(refused("invalid_image"));
  });

  test("have at most 20 MiB, each and together", async () => {
    const over = Buffer.concat([large, Buffer.alloc(20 * mib - large.length + 1)]);
    expect(refusalOf(await ask(part(over)))).toBe(refused("image_too_large"));
    expect(refusalOf(await ask(part(large), part(large), part(large)))).toBe(
      refused("image_too_large", 3),
    );
  });
});

test("files and sounds of a request have at most 20 MiB, each and together", async () => {
  const refused = (index: number) =>
    `400 invalid_request_error invalid_value input[0].content[${index}].input_audio.data`;
  expect(refusalOf(await ask(inputAudio(wavOf(20 * mib))))).toBe(refused(1));
  const half = inputAudio(wavOf(11 * mib));
  expect(refusalOf(await ask(half, half))).toBe(refused(2));
});

test("an upload has at most 20 MiB, wherever the purpose stands", async () => {
  const over = Buffer.concat([large, Buffer.alloc(20 * mib - large.length + 1)]);
  for (const isFileFirst of [false, true]) {
    const answer = await upload(caller, over, { isFileFirst });
    expect(refusalOf(answer)).toBe("400 invalid_request_error image_too_large file");
  }
});
