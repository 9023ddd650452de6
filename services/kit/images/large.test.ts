import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ImageError, type ImageRules } from "./protocol.ts";
import * as samples from "./samples.fixture.ts";
import { createImageVerifier, type ImageOwner, type ImageVerifier } from "./verifier.ts";

const { noise } = samples;
const rules: ImageRules = {
  accept: ["jpeg", "png", "webp"],
  maxBytes: 20 * 1024 * 1024,
  maxPixels: 50_000_000,
};
const owner: ImageOwner = { accountId: "acc_a", signal: new AbortController().signal };

let verifier: ImageVerifier;
beforeAll(() => {
  verifier = createImageVerifier({ processes: 1, memoryMb: 640, timeoutMs: 15_000 });
});
afterAll(() => verifier[Symbol.asyncDispose]());

async function kindOf(source: Uint8Array): Promise<string> {
  try {
    return (await verifier.verify(source, rules, owner)).format;
  } catch (error) {
    return error instanceof ImageError ? error.kind : String(error);
  }
}

describe("a large image", () => {
  const size = { width: 1300, height: 1001 };
  const large = () => noise(size.width, size.height);
  const kinds = {
    jpeg: () => large().jpeg(),
    "jpeg, progressive": () => large().jpeg({ progressive: true }),
    "jpeg, CMYK": () => large().toColourspace("cmyk").jpeg(),
    webp: () => large().webp({ effort: 0 }),
    "webp, lossless": () => large().webp({ lossless: true, effort: 0 }),
    png: () => large().png(),
    "png, interlaced": () => large().png({ progressive: true }),
  };

  it.each(Object.entries(kinds))("is read to its end: %s", async (name, make) => {
    const bytes = await make().toBuffer();
    expect(await verifier.verify(bytes, rules, owner)).toMatchObject(size);
    const passed: number[] = [];
    for (const cut of [200, 1_000, 5_000, Math.floor(bytes.length / 2)]) {
      // A PNG gets its last chunk back, so that the pixels alone decide.
      const end = name.startsWith("png") ? 12 : 0;
      const parts = [bytes.subarray(0, -cut - end), bytes.subarray(bytes.length - end)];
      if ((await kindOf(Buffer.concat(parts))) !== "corrupt") passed.push(cut);
    }
    expect(passed).toEqual([]);
  });
});

describe("a JPEG of several scans", () => {
  it("of 50 megapixels takes a decoder of little memory", async () => {
    await using small = createImageVerifier({ processes: 1, memoryMb: 160, timeoutMs: 15_000 });
    const bytes = samples.jpegOfScans(8_000, 6_250, 90);
    expect(await small.verify(bytes, rules, owner)).toMatchObject({ width: 8_000, height: 6_250 });
    // The image's size comes behind bytes that no reader of headers expects.
    const frame = bytes.indexOf(Buffer.of(0xff, 0xc2));
    const hidden = Buffer.concat([
      bytes.subarray(0, frame),
      Buffer.alloc(9),
      bytes.subarray(frame),
    ]);
    expect(await small.verify(hidden, rules, owner)).toMatchObject({ height: 6_250 });
  });

  it("is refused for what is wrong below the rows that are decoded, too", async () => {
    const bytes = samples.jpegOfScans(8_000, 6_250, 10);
    const header = Buffer.of(0xff, 0xda, 0, 8, 1, 1, 0, 9, 9, 13);
    const at = bytes.lastIndexOf(header);
    expect(at).toBeGreaterThan(0);
    const wrong = (...change: [index: number, value: number]) => {
      const copy = Buffer.from(bytes);
      copy[at + change[0]] = change[1];
      return kindOf(copy);
    };
    expect(await kindOf(bytes)).toBe("jpeg");
    // A component that does not exist, a table that is missing, a step that is out of order.
    expect(await wrong(5, 7)).toBe("corrupt");
    expect(await wrong(6, 0x03)).toBe("corrupt");
    expect(await wrong(9, 0x42)).toBe("corrupt");
    expect(await kindOf(bytes.subarray(0, -2))).toBe("corrupt");
  });
});

describe("an image made to be slow", () => {
  it("is decoded in time: rows of a pixel each", async () => {
    const tall = samples.plainPng(1, 50_000_000);
    expect(await verifier.verify(tall, rules, owner)).toMatchObject({
      width: 1,
      height: 50_000_000,
    });
    const wide = samples.plainPng(50_000_000, 1);
    expect(await verifier.verify(wide, rules, owner)).toMatchObject({
      width: 50_000_000,
      height: 1,
    });
  });

  it("is decoded in time: 20 MiB of data in chunks of a byte", async () => {
    const png = samples.plainPng(1_000, 1_000, (data) => {
      const chunks = Array.from(data, (byte) => samples.pngChunk("IDAT", Buffer.of(byte)));
      const empty = samples.pngChunk("IDAT", Buffer.alloc(0));
      return Buffer.concat([Buffer.alloc(1_500_000 * empty.length, empty), ...chunks]);
    });
    expect(await kindOf(png)).toBe("png");
  });

  it("is corrupt where its JPEG has hundreds of scans", async () => {
    expect(await kindOf(samples.jpegOfScans(80, 80, 100))).toBe("jpeg");
    expect(await kindOf(samples.jpegOfScans(8_000, 6_250, 1_000))).toBe("corrupt");
  });
});
