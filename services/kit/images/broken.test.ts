import { deflateSync } from "node:zlib";
import sharp from "sharp";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ImageError, type ImageRules } from "./protocol.ts";
import { noise, pngChunk, withPngChunk } from "./samples.fixture.ts";
import { createImageVerifier, type ImageOwner, type ImageVerifier } from "./verifier.ts";

// Runs one set of images, most of them broken, through both ways of decoding. One is the short way: a PNG row by row, a large image at
// an eighth of its size. The other is the full decoder that upstreams have. Each image that the full decoder refuses is refused by the
// short way, too.

const rules: ImageRules = {
  accept: ["jpeg", "png", "webp"],
  maxBytes: 20 * 1024 * 1024,
  maxPixels: 50_000_000,
};
const owner: ImageOwner = { accountId: "acc_a", signal: new AbortController().signal };

let verifier: ImageVerifier;
beforeAll(() => {
  verifier = createImageVerifier({ processes: 1, memoryMb: 448, timeoutMs: 15_000 });
});
afterAll(() => verifier[Symbol.asyncDispose]());

const isOursTaken = async (bytes: Buffer): Promise<boolean> => {
  try {
    await verifier.verify(bytes, rules, owner);
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(ImageError);
    return false;
  }
};
const isFullTaken = (bytes: Buffer): Promise<boolean> =>
  sharp(bytes, { failOn: "error", ignoreIcc: true })
    .raw()
    .toBuffer()
    .then(
      () => true,
      () => false,
    );

const colours = { grey: 0, rgb: 2, palette: 3, greyAlpha: 4, rgba: 6 };
const samplesOf: Record<number, number> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const side = 4;

/** A PNG of four by four pixels, with these chunks between header and end. */
function png(depth: number, colour: number, ...chunks: Buffer[]): Buffer {
  const end = pngChunk("IEND", Buffer.alloc(0));
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  return Buffer.concat([signature, headerOf(depth, colour), ...chunks, end]);
}
function headerOf(depth: number, colour: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header[8] = depth;
  header[9] = colour;
  return pngChunk("IHDR", header);
}
/** Its rows, unpacked. */
const rowsOf = (depth: number, colour: number, fill = 0) => {
  const row = Buffer.alloc(1 + Math.ceil((side * depth * (samplesOf[colour] ?? 1)) / 8), fill);
  row[0] = 0;
  return Buffer.concat(Array<Buffer>(side).fill(row));
};
const pixels = (depth: number, colour: number, fill?: number) =>
  pngChunk("IDAT", deflateSync(rowsOf(depth, colour, fill)));
const palette = (bytes: number) => pngChunk("PLTE", Buffer.alloc(bytes));
const indexed = pixels(8, colours.palette);
const rgb = pixels(8, colours.rgb);
const withPalettes = (...bytes: number[]) =>
  png(8, colours.palette, ...bytes.map(palette), indexed);
const withChunk = (type: string, bytes: number) =>
  png(8, colours.rgb, pngChunk(type, Buffer.alloc(bytes)), rgb);
/** An image in colour whose packed rows are changed. */
const packed = (change: (data: Buffer) => Buffer | undefined) => {
  const data = deflateSync(rowsOf(8, colours.rgb));
  return png(8, colours.rgb, pngChunk("IDAT", change(data) ?? data));
};

const small: Record<string, () => Buffer> = {
  "a palette of one colour": () => withPalettes(3),
  "a palette of 256": () => withPalettes(768),
  "a palette of 2 bytes": () => withPalettes(2),
  "a palette of 4 bytes": () => withPalettes(4),
  "a palette of 257 entries": () => withPalettes(771),
  "a palette of 769 bytes": () => withPalettes(769),
  "an empty palette": () => withPalettes(0),
  "two palettes": () => withPalettes(6, 6),
  "no palette": () => withPalettes(),
  "a palette behind the pixels": () => png(8, colours.palette, indexed, palette(6)),
  "a palette of more than the depth can name": () =>
    png(1, colours.palette, palette(9), pixels(1, colours.palette)),
  "a pixel beyond the palette": () =>
    png(8, colours.palette, palette(6), pixels(8, colours.palette, 9)),
  "colours with a palette": () => png(8, colours.rgb, palette(6), rgb),
  "colours with a palette of 2 bytes": () => png(8, colours.rgb, palette(2), rgb),
  "colours with an empty palette": () => png(8, colours.rgb, palette(0), rgb),
  "colours with two palettes": () => png(8, colours.rgb, palette(6), palette(6), rgb),
  "colours and alpha with an empty palette": () =>
    png(8, colours.rgba, palette(0), pixels(8, colours.rgba)),
  "grey with a palette": () => png(8, colours.grey, palette(6), pixels(8, colours.grey)),
  "grey and alpha with a palette": () =>
    png(8, colours.greyAlpha, palette(6), pixels(8, colours.greyAlpha)),
  "transparency of more colours than there are": () =>
    png(8, colours.palette, palette(6), pngChunk("tRNS", Buffer.alloc(3)), indexed),
  "two headers": () => png(8, colours.rgb, headerOf(8, colours.rgb), rgb),
  "an unknown chunk that must be known": () => withChunk("ABCD", 3),
  "a chunk whose type is no letters": () => withChunk("a1Cd", 3),
  "a chunk of a later version": () => withChunk("abcd", 3),
  "gamma of 3 bytes": () => withChunk("gAMA", 3),
  "a profile of a byte": () => withChunk("iCCP", 1),
  "text that does not unpack": () => withChunk("zTXt", 1),
  "EXIF of 3 bytes": () => withChunk("eXIf", 3),
  "no pixels": () => png(8, colours.rgb),
  "an empty chunk of pixels before": () =>
    png(8, colours.rgb, pngChunk("IDAT", Buffer.alloc(0)), rgb),
  "a byte too few": () => packed(() => deflateSync(rowsOf(8, colours.rgb).subarray(1))),
  "bytes too many": () =>
    packed(() => deflateSync(Buffer.concat([rowsOf(8, colours.rgb), Buffer.alloc(50)]))),
  "a wrong checksum of the pixels": () =>
    packed((data) => {
      data.writeUInt8(data.readUInt8(data.length - 1) ^ 1, data.length - 1);
      return data;
    }),
  "no checksum of the pixels": () => packed((data) => data.subarray(0, -4)),
  "an unknown filter": () => packed(() => deflateSync(rowsOf(8, colours.rgb).fill(5, 0, 1))),
  "a window too large": () => packed((data) => withZlibHeader(data, 0x88, 0)),
  "a dictionary": () => packed((data) => withZlibHeader(data, 0x78, 0x20)),
};

function withZlibHeader(data: Buffer, method: number, flags: number): Buffer {
  const rest = ((method << 8) | flags) % 31;
  return Buffer.concat([Buffer.of(method, flags + (rest === 0 ? 0 : 31 - rest)), data.subarray(2)]);
}

it.each(Object.entries(small))("%s", async (_, make) => {
  const bytes = make();
  expect(await isOursTaken(bytes)).toBe(await isFullTaken(bytes));
});

it("some of them are whole, and most are not", async () => {
  const verdicts = await Promise.all(Object.values(small).map((make) => isFullTaken(make())));
  const whole = verdicts.filter((isTaken) => isTaken).length;
  expect(whole).toBeGreaterThan(10);
  expect(verdicts.length - whole).toBeGreaterThan(15);
});

const size = [1_300, 1_001] as const;
it.each([
  ["png", () => noise(...size).png()],
  ["png, interlaced", () => noise(...size).png({ progressive: true })],
  ["png, of a palette", () => noise(...size).png({ palette: true })],
  ["jpeg", () => noise(...size).jpeg()],
  ["jpeg, progressive", () => noise(...size).jpeg({ progressive: true })],
  ["webp", () => noise(...size).webp({ effort: 0 })],
  ["webp, lossless", () => noise(...size).webp({ lossless: true, effort: 0 })],
])("a large %s that is broken", async (_, make) => {
  const bytes = await make().toBuffer();
  const broken: Record<string, Buffer> = { whole: bytes };
  for (const at of [20, 30, 100, 160, 400, Math.floor(bytes.length / 2)]) {
    broken[`without what follows ${at}`] = bytes.subarray(0, at);
    broken[`without 16 bytes at ${at}`] = Buffer.concat([
      bytes.subarray(0, at),
      bytes.subarray(at + 16),
    ]);
    broken[`with zeros at ${at}`] = Buffer.from(bytes).fill(0, at, at + 16);
  }
  const missed: string[] = [];
  for (const [name, picture] of Object.entries(broken)) {
    if (!(await isFullTaken(picture)) && (await isOursTaken(picture))) missed.push(name);
  }
  expect(missed).toEqual([]);
  expect(await isOursTaken(bytes)).toBe(true);
});

it("a palette that is broken costs a picture with everything else in order", async () => {
  const whole = await noise(20, 20).png({ palette: true }).toBuffer();
  expect(await isOursTaken(whole)).toBe(true);
  expect(await isOursTaken(withPngChunk(whole, "PLTE", Buffer.alloc(2)))).toBe(false);
});
