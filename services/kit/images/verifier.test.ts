import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { deflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ImageError, type ImageRules } from "./protocol.ts";
import * as samples from "./samples.fixture.ts";
import type { ImageFormat } from "./sniff.ts";
import { createImageVerifier, type ImageOwner, type ImageVerifier } from "./verifier.ts";

const { noise, plain } = samples;
const rules: ImageRules = {
  accept: ["jpeg", "png", "webp"],
  maxBytes: 20 * 1024 * 1024,
  maxPixels: 50_000_000,
};

const owner: ImageOwner = { accountId: "acc_a", signal: new AbortController().signal };

let verifier: ImageVerifier;
let folder: string;

beforeAll(async () => {
  verifier = createImageVerifier({ processes: 1, memoryMb: 768, timeoutMs: 15_000 });
  folder = await mkdtemp(path.join(tmpdir(), "images-"));
});

afterAll(async () => {
  await verifier[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

async function kindOf(source: Uint8Array | string, its: Partial<ImageRules> = {}): Promise<string> {
  try {
    return (await verifier.verify(source, { ...rules, ...its }, owner)).format;
  } catch (error) {
    return error instanceof ImageError ? error.kind : String(error);
  }
}

const whole: Record<string, () => Promise<Buffer>> = {
  jpeg: () => noise().jpeg().toBuffer(),
  "jpeg, progressive": () => noise().jpeg({ progressive: true }).toBuffer(),
  "jpeg, grey": () => noise().greyscale().jpeg().toBuffer(),
  "jpeg, CMYK": () => noise().toColourspace("cmyk").jpeg().toBuffer(),
  png: () => noise().png().toBuffer(),
  "png, interlaced": () => noise().png({ progressive: true }).toBuffer(),
  "png, palette": () => noise().png({ palette: true }).toBuffer(),
  "png, 16 bits with alpha": () => noise().ensureAlpha(0.5).toColourspace("rgb16").png().toBuffer(),
  "png, grey": () => noise().toColourspace("b-w").png().toBuffer(),
  "png, animated": samples.animatedPng,
  webp: () => noise().webp().toBuffer(),
  "webp, lossless": () => noise().webp({ lossless: true }).toBuffer(),
  "webp, alpha": () => noise().ensureAlpha(0.5).webp().toBuffer(),
  "webp, animated": samples.animatedWebp,
};

describe.each(Object.entries(whole))("%s", (name, make) => {
  const format = name.split(",")[0] as ImageFormat;

  it("is verified", async () => {
    expect(await verifier.verify(await make(), rules, owner)).toEqual({
      format,
      mimeType: `image/${format}`,
      width: 120,
      height: 80,
      frames: name === "webp, animated" ? 2 : 1,
      orientation: 1,
    });
  });

  it("is corrupt wherever it is cut", async () => {
    const bytes = await make();
    const cuts = new Set([1, 2, 4, 8, 11, 12, 13, 20, 40]);
    for (let part = 1; part < 12; part++) cuts.add(Math.floor((bytes.length * part) / 12));
    const passed: string[] = [];
    for (const cut of cuts) {
      const kind = await kindOf(bytes.subarray(0, -cut));
      if (kind !== "corrupt") passed.push(`${kind} without the last ${cut} of ${bytes.length}`);
    }
    expect(passed).toEqual([]);
  });

  it("may have bytes behind its end", async () => {
    const bytes = await make();
    for (const rest of ["<html><script>alert(1)</script>", "PK\x03\x04".repeat(100), "\0"]) {
      expect(await kindOf(Buffer.concat([bytes, Buffer.from(rest, "latin1")]))).toBe(format);
    }
  });

  it("is unsupported where its format is not accepted", async () => {
    const others = rules.accept.filter((accepted) => accepted !== format);
    expect(await kindOf(await make(), { accept: others })).toBe("unsupported_format");
  });
});

it("looks at the first image of a JPEG alone, as in Ultra HDR", async () => {
  const { bytes, base } = await samples.ultraHdrJpeg();
  const verified = await verifier.verify(bytes, rules, owner);
  expect(verified).toMatchObject({ format: "jpeg", width: 120, height: 80, frames: 1 });
  expect(await kindOf(bytes.subarray(0, base))).toBe("jpeg");
  expect(await kindOf(bytes.subarray(0, base - 3))).toBe("corrupt");
});

describe("what is no supported image", () => {
  it("is refused by its content", async () => {
    const others = {
      empty: Buffer.alloc(0),
      zeros: Buffer.alloc(1000),
      text: Buffer.from("hello"),
      html: Buffer.from("<html>"),
      svg: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
      gif: await noise().gif().toBuffer(),
      tiff: await noise().tiff().toBuffer(),
      avif: await noise().avif({ effort: 0 }).toBuffer(),
      pdf: Buffer.from("%PDF-1.7\n"),
      bmp: Buffer.from("BM000000000000000000000000000000"),
      wave: Buffer.from("RIFF0000WAVEfmt 0000000000000000"),
      "png behind a space": Buffer.concat([Buffer.from(" "), await noise().png().toBuffer()]),
      "gif with a png in it": Buffer.concat([
        Buffer.from("GIF89a"),
        await noise().png().toBuffer(),
      ]),
    };
    for (const [name, bytes] of Object.entries(others)) {
      expect([name, await kindOf(bytes)]).toEqual([name, "unsupported_format"]);
    }
  });

  it("is corrupt where only the first bytes are right", async () => {
    for (const start of ["\xff\xd8\xff\xe0", "\x89PNG\r\n\x1a\n", "RIFF\xff\xff\0\0WEBPVP8 "]) {
      for (const rest of ["", "\0".repeat(500), "<svg/>".repeat(50)]) {
        expect(await kindOf(Buffer.from(start + rest, "latin1"))).toBe("corrupt");
      }
    }
  });

  it("is never more than a refusal, with any bits turned", async () => {
    let seed = 42;
    const random = (below: number) => {
      seed = (seed * 1103515245 + 12345) % 2 ** 31;
      return seed % below;
    };
    const kinds = new Set<string>();
    for (const make of [whole.jpeg, whole.png, whole.webp, whole["webp, animated"]]) {
      const bytes = (await make?.()) ?? Buffer.alloc(0);
      for (let round = 0; round < 60; round++) {
        const broken = Buffer.from(bytes);
        for (let flips = 0; flips < 4; flips++) {
          const at = random(round % 2 === 0 ? Math.min(300, broken.length) : broken.length);
          broken[at] = random(256);
        }
        kinds.add(await kindOf(broken));
      }
    }
    const allowed = ["jpeg", "png", "webp", "corrupt", "unsupported_format", "too_many_pixels"];
    expect([...kinds].filter((kind) => !allowed.includes(kind))).toEqual([]);
    expect(kinds).toContain("corrupt");
  });
});

/** The decoder processes of this process, without those that ran `before`. */
function decoderPids(before = new Set<number>()): Set<number> {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8");
  const pids = children.split(" ").filter(Boolean).map(Number);
  return new Set(pids.filter((pid) => !before.has(pid)));
}

/** The most decoders that work at once until `work` ends. */
async function mostDecoders(work: Promise<unknown>) {
  const before = decoderPids();
  let size = 0;
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    size = Math.max(size, decoderPids(before).size);
    await new Promise(setImmediate);
  }
  await ended;
  return size;
}

describe("files", () => {
  it("go by their content and not by their name", async () => {
    const file = path.join(folder, "photo.png");
    await writeFile(file, await noise().jpeg().toBuffer());
    expect(await kindOf(file)).toBe("jpeg");
    const drawing = path.join(folder, "drawing.jpg");
    await writeFile(drawing, '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    expect(await kindOf(drawing)).toBe("unsupported_format");
  });

  it("obey the same limits", async () => {
    const file = path.join(folder, "limits");
    const bytes = await noise().png().toBuffer();
    await writeFile(file, bytes);
    expect(await kindOf(file, { maxBytes: bytes.length })).toBe("png");
    expect(await kindOf(file, { maxBytes: bytes.length - 1 })).toBe("too_large");
    expect(await kindOf(file, { maxPixels: 120 * 80 - 1 })).toBe("too_many_pixels");
    await writeFile(file, bytes.subarray(0, -100));
    expect(await kindOf(file)).toBe("corrupt");
  });

  it("that do not exist are the file system's error", async () => {
    const missing = verifier.verify(path.join(folder, "missing"), rules, owner);
    await expect(missing).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("limits", () => {
  it("let exactly maxBytes and maxPixels pass", async () => {
    const bytes = await noise().png().toBuffer();
    expect(await kindOf(bytes, { maxBytes: bytes.length, maxPixels: 9600 })).toBe("png");
    expect(await kindOf(bytes, { maxBytes: bytes.length - 1 })).toBe("too_large");
    expect(await kindOf(bytes, { maxPixels: 9599 })).toBe("too_many_pixels");
  });

  it("hold at 50 megapixels", async () => {
    expect(await kindOf(await plain(8000, 6250).png().toBuffer())).toBe("png");
    expect(await kindOf(await plain(8000, 6251).png().toBuffer())).toBe("too_many_pixels");
  });

  it("refuse a claimed size before any process starts", async () => {
    await using idle = createImageVerifier({ processes: 1, memoryMb: 256, timeoutMs: 1000 });
    const bomb = samples.withPngSize(await plain(9, 9).png().toBuffer(), 100_000, 100_000);
    await expect(idle.verify(bomb, rules, owner)).rejects.toMatchObject({
      kind: "too_many_pixels",
    });
    const huge = await plain(9, 9).jpeg().toBuffer();
    // Height and width follow the length and the depth in the frame header.
    const frame = huge.indexOf(Buffer.from([0xff, 0xc0]));
    huge.writeUInt32BE(0xfffefffe, frame + 5);
    await expect(idle.verify(huge, rules, owner)).rejects.toMatchObject({
      kind: "too_many_pixels",
    });
    expect(process.getActiveResourcesInfo()).not.toContain("ProcessWrap");
  });

  it("stand against data that unpacks to far more than the picture", async () => {
    const bomb = deflateSync(Buffer.alloc(300_000_000), { level: 9 });
    const png = await plain(9, 9).png().toBuffer();
    const profile = Buffer.concat([Buffer.from("icc\0\0"), bomb]);
    const text = Buffer.concat([Buffer.from("Comment\0\0"), bomb]);
    const allowed = ["png", "corrupt"];
    expect(allowed).toContain(await kindOf(samples.withPngChunk(png, "iCCP", profile)));
    expect(allowed).toContain(await kindOf(samples.withPngChunk(png, "zTXt", text)));
    expect(allowed).toContain(await kindOf(samples.withPngChunk(png, "IDAT", bomb)));
  });
});

describe("processes", () => {
  it("start with the first image, and do not keep the program alive", async () => {
    const script = `
      const { createImageVerifier } = await import(${JSON.stringify(new URL("./verifier.ts", import.meta.url).href)});
      const verifier = createImageVerifier({ processes: 1, memoryMb: 256, timeoutMs: 40_000 });
      const count = () => process.getActiveResourcesInfo().filter((name) => name === "ProcessWrap").length;
      const before = count();
      const bytes = Buffer.from(${JSON.stringify((await plain(9, 9).png().toBuffer()).toString("base64"))}, "base64");
      const verified = verifier.verify(bytes, ${JSON.stringify(rules)}, { accountId: "a", signal: new AbortController().signal });
      await new Promise(setImmediate);
      const during = count();
      console.log(before, during, (await verified).format);
    `;
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], {
      timeout: 50_000,
    });
    expect(stdout.trim()).toBe("0 1 png");
  });

  it("are replaced when an image takes too long", async () => {
    await using hasty = createImageVerifier({ processes: 1, memoryMb: 768, timeoutMs: 2_000 });
    const small = await noise().png().toBuffer();
    const before = decoderPids();
    for (let round = 0; round < 2; round++) {
      expect(await hasty.verify(small, rules, owner)).toMatchObject({ format: "png" });
      // An image's time depends on the machine. Only a stopped process surely takes too long.
      const [pid = 0, ...others] = decoderPids(before);
      expect(others).toEqual([]);
      process.kill(pid, "SIGSTOP");
      await expect(hasty.verify(small, rules, owner)).rejects.toMatchObject({ kind: "timeout" });
      await vi.waitUntil(() => !decoderPids(before).has(pid), { timeout: 10_000 });
    }
    expect(await hasty.verify(small, rules, owner)).toMatchObject({ format: "png" });
  });

  it("are replaced when an image takes too much memory", async () => {
    await using lean = createImageVerifier({ processes: 1, memoryMb: 200, timeoutMs: 15_000 });
    // Many colours, and compressed well.
    const blocks = noise(40, 30).resize(8_000, 6_000, { kernel: "nearest" });
    const heavy = await blocks.webp({ lossless: true, effort: 0 }).toBuffer();
    const small = await noise().png().toBuffer();
    await expect(lean.verify(heavy, rules, owner)).rejects.toMatchObject({
      kind: "too_many_pixels",
    });
    expect(await lean.verify(small, rules, owner)).toMatchObject({ format: "png" });
  });

  it("share the work, and each image gets its own answer", async () => {
    await using pair = createImageVerifier({ processes: 2, memoryMb: 256, timeoutMs: 15_000 });
    const widths = Array.from({ length: 30 }, (_, index) => index + 1);
    const images = await Promise.all(widths.map((width) => plain(width, 7).webp().toBuffer()));
    const verified = await Promise.all(images.map((bytes) => pair.verify(bytes, rules, owner)));
    expect(verified.map(({ width }) => width)).toEqual(widths);
  });

  it("refuse clearly when the account's queue is full, and go on with what waits", async () => {
    await using single = createImageVerifier({ processes: 1, memoryMb: 256, timeoutMs: 15_000 });
    const bytes = await plain(9, 9).png().toBuffer();
    const all = Array.from({ length: 515 }, () => single.verify(bytes, rules, owner));
    const settled = await Promise.allSettled(all);
    // One in work and 512 waiting.
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(513);
    for (const late of settled.slice(513)) {
      expect(late).toMatchObject({ status: "rejected", reason: { kind: "busy" } });
    }
    expect(await single.verify(bytes, rules, owner)).toMatchObject({ format: "png" });
  });

  it("leave a place to other accounts, however many one sends", async () => {
    await using pair = createImageVerifier({ processes: 2, memoryMb: 256, timeoutMs: 60_000 });
    const other = { ...owner, accountId: "acc_b" };
    const small = await plain(3, 3).png().toBuffer();
    // Starts both processes.
    await Promise.all([pair.verify(small, rules, owner), pair.verify(small, rules, other)]);
    const slow = samples.jpegOfScans(8_000, 6_250, 90);
    let ended = 0;
    const worst = Array.from({ length: 20 }, () =>
      pair.verify(slow, rules, owner).then(
        () => ended++,
        () => {},
      ),
    );
    for (let round = 0; round < 5; round++) await pair.verify(small, rules, other);
    expect(ended).toBeLessThan(worst.length / 2);
    await pair[Symbol.asyncDispose]();
    await Promise.all(worst);
  });

  it("decode one large image at a time", async () => {
    await using pair = createImageVerifier({ processes: 2, memoryMb: 640, timeoutMs: 60_000 });
    const slow = samples.jpegOfScans(8_000, 6_250, 40);
    const file = path.join(folder, "large");
    await writeFile(file, slow);
    const ids = ["acc_a", "acc_b", "acc_c"];
    const large = ids.map((accountId, index) =>
      pair.verify(index === 1 ? file : slow, rules, { ...owner, accountId }),
    );
    expect(await mostDecoders(Promise.all(large))).toBe(1);
  });

  it("end when they have had nothing to do for a while", async () => {
    await using lazy = createImageVerifier({
      processes: 1,
      memoryMb: 256,
      timeoutMs: 15_000,
      idleMs: 50,
    });
    const bytes = await plain(9, 9).png().toBuffer();
    const before = decoderPids();
    await lazy.verify(bytes, rules, owner);
    expect(decoderPids(before).size).toBe(1);
    await vi.waitUntil(() => decoderPids(before).size === 0, { timeout: 10_000 });
    expect(await lazy.verify(bytes, rules, owner)).toMatchObject({ format: "png" });
  });

  it("end when the verifier is disposed, and nothing is left waiting", async () => {
    const closing = createImageVerifier({ processes: 1, memoryMb: 256, timeoutMs: 15_000 });
    const bytes = await plain(9, 9).png().toBuffer();
    await closing.verify(bytes, rules, owner);
    const open = Promise.allSettled([
      closing.verify(bytes, rules, owner),
      closing.verify(bytes, rules, owner),
    ]);
    await closing[Symbol.asyncDispose]();
    for (const outcome of await open) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { kind: "unavailable" } });
    }
    await expect(closing.verify(bytes, rules, owner)).rejects.toMatchObject({
      kind: "unavailable",
    });
    await vi.waitUntil(() => !process.getActiveResourcesInfo().includes("ProcessWrap"), {
      timeout: 10_000,
    });
  });

  it("need room and at least one of them", () => {
    const options = { processes: 1, memoryMb: 256, timeoutMs: 1000 };
    expect(() => createImageVerifier({ ...options, processes: 0 })).toThrow(RangeError);
    expect(() => createImageVerifier({ ...options, memoryMb: 127 })).toThrow(RangeError);
  });
});
