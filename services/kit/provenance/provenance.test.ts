import { generateKeyPairSync } from "node:crypto";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { piecesOf } from "#kit/base/in-turns.ts";
import {
  type Authority,
  type CertificateFolder,
  certificateFolder,
  noCertificates,
  type Pair,
} from "../../../test/support/certificates.ts";
import { box } from "./boxes.ts";
import {
  chainFault,
  createSigner,
  type Mark,
  markImage,
  markMp4,
  readOrigin,
  SignerKeyError,
} from "./index.ts";

let folder: CertificateFolder;
let authority: Authority;
let pair: Pair;
let mark: Mark;
beforeAll(async () => {
  if (noCertificates !== undefined) return;
  folder = await certificateFolder();
  authority = await folder.authority();
  pair = await authority.issueSigner("Example Studio");
  mark = {
    generator: { name: "genmesh", version: "1.2.3" },
    madeAtMs: Date.parse("2026-03-04T05:06:07Z"),
    source: "trained_model",
    signer: createSigner(pair.cert, pair.key),
  };
});
afterAll(() => folder?.[Symbol.asyncDispose]());
const withCertificates = test.skipIf(noCertificates !== undefined);

const said = {
  generator: "genmesh 1.2.3",
  signer: "Example Studio",
  issuer: "authority",
  madeByAi: true,
  madeAtMs: Date.parse("2026-03-04T05:06:07Z"),
};

function picture(format: "png" | "jpeg"): Promise<Buffer> {
  const create = { width: 40, height: 30, channels: 3, background: "#c60" } as const;
  return sharp({ create })
    .withExif({ IFD0: { Copyright: "someone" } })
    [format]()
    .toBuffer();
}

/** All of a marked file. */
async function whole(made: AsyncIterable<Buffer> | readonly Buffer[] | string): Promise<Buffer> {
  if (typeof made === "string") throw new Error(`not marked: ${made}`);
  const parts: Buffer[] = [];
  for await (const part of made) parts.push(part);
  return Buffer.concat(parts);
}

describe("an image", () => {
  withCertificates.each(["png", "jpeg"] as const)("of %s says what made it", async (format) => {
    const type = `image/${format}`;
    const plain = await picture(format);
    const marked = await whole(await markImage(plain, type, mark));
    expect(readOrigin(plain, type)).toBeUndefined();
    expect(readOrigin(marked, type)).toEqual(said);
    const pixels = (bytes: Buffer) => sharp(bytes).raw().toBuffer();
    expect((await pixels(marked)).equals(await pixels(plain))).toBe(true);
    expect((await sharp(marked).metadata()).exif).toEqual((await sharp(plain).metadata()).exif);
    expect(await markImage(marked, type, mark)).toBe("has_one");
    // A manifest that is cut short is none that can be read.
    expect(readOrigin(marked.subarray(0, 200), type)).toBeUndefined();
  });

  withCertificates("made without a model does not say that a model made it", async () => {
    const png = await picture("png");
    const marked = await whole(await markImage(png, "image/png", { ...mark, source: "algorithm" }));
    expect(readOrigin(marked, "image/png")).toEqual({ ...said, madeByAi: false });
  });

  withCertificates("in too many parts stays as it is", async () => {
    const png = await picture("png");
    const empty = box("abCd", Buffer.alloc(4)).fill(0, 0, 4);
    const parts = Buffer.concat(Array(30_000).fill(empty));
    const many = Buffer.concat([png.subarray(0, 33), parts, png.subarray(33)]);
    expect(await markImage(many, "image/png", mark)).toBe("layout");
  });

  withCertificates("with a manifest that is no manifest is told apart", async () => {
    const marked = await whole(await markImage(await picture("png"), "image/png", mark));
    const at = marked.indexOf("c2pa.claim.v2");
    for (const [place, byte] of [
      [marked.indexOf("jumd") - 4, 0xff],
      [at + "c2pa.claim.v2".length + 1 + 8, 0x9f],
    ] as const) {
      const broken = Buffer.from(marked);
      broken[place] = byte;
      expect(readOrigin(broken, "image/png")).toBe("unreadable");
    }
  });
});

describe("an MP4", () => {
  const be32 = (...numbers: number[]) => {
    const bytes = Buffer.alloc(4 * numbers.length);
    for (const [index, number] of numbers.entries()) bytes.writeUInt32BE(number, 4 * index);
    return bytes;
  };
  const type = box("ftyp", Buffer.from("isom\0\0\x02\0isommp41"));
  const frames = ["FIRST!", "SECOND", "THIRD!", "FOURTH"];
  const media = box("mdat", ...frames.map((frame) => Buffer.from(frame)));
  /** Offsets of the first bytes of the frames, where the media begin there. */
  const from = (mediaAt: number) => frames.map((_, index) => mediaAt + 8 + 6 * index);
  const stbl = (...tables: Buffer[]) =>
    box("moov", box("trak", box("mdia", box("minf", box("stbl", ...tables)))));
  const withOffsets = (at: number[]) => {
    const [first = 0, second = 0, third = 0, fourth = 0] = at;
    const short = box("stco", be32(0, 2, first, second));
    const long = box("co64", be32(0, 2, 0, third, 0, fourth));
    return stbl(short, long);
  };
  const index = withOffsets([0, 0, 0, 0]).length;
  const indexFirst = Buffer.concat([type, withOffsets(from(type.length + index)), media]);
  const indexLast = Buffer.concat([type, media, withOffsets(from(type.length))]);
  const fragmentAt = type.length;
  const moof = box("moof", box("traf", box("tfhd", be32(1, 1, 0, fragmentAt + 76))));
  const access = box("mfra", box("tfra", be32(0, 1, 0, 1, 0, fragmentAt), Buffer.of(1, 1, 1)));
  const fragmented = Buffer.concat([type, moof, box("free", Buffer.alloc(100)), access]);

  const marked = async (plain: Buffer, pieceBytes = 7) => {
    async function* open() {
      for (let at = 0; at < plain.length; at += pieceBytes) {
        yield plain.subarray(at, at + pieceBytes);
      }
    }
    return markMp4(open, mark);
  };
  const frameAt = (bytes: Buffer, offset: number) => bytes.toString("latin1", offset, offset + 6);

  withCertificates.each([
    ["first", indexFirst],
    ["last", indexLast],
  ])("with its index %s says what made it, and its frames are found", async (_, plain) => {
    const bytes = await whole(await marked(plain));
    expect(readOrigin(plain, "video/mp4")).toBeUndefined();
    expect(readOrigin(bytes, "video/mp4")).toEqual(said);
    const short = bytes.indexOf("stco") + 12;
    const long = bytes.indexOf("co64") + 12;
    const offsets = [
      ...[bytes.readUInt32BE(short), bytes.readUInt32BE(short + 4)],
      ...[bytes.readUInt32BE(long + 4), bytes.readUInt32BE(long + 12)],
    ];
    expect(offsets.map((offset) => frameAt(bytes, offset))).toEqual(frames);
    expect(bytes.toString("latin1", type.length + 4, type.length + 8)).toBe("uuid");
    expect(await marked(bytes, 1)).toBe("has_one");
  });

  withCertificates("in fragments has its offsets moved too", async () => {
    const bytes = await whole(await marked(fragmented));
    const shift = bytes.length - fragmented.length;
    expect(bytes.readUInt32BE(bytes.indexOf("tfhd") + 4 + 12)).toBe(fragmentAt + 76 + shift);
    expect(bytes.readUInt32BE(bytes.indexOf("tfra") + 4 + 20)).toBe(fragmentAt + shift);
  });

  withCertificates.each([
    ["is none", Buffer.from("no MP4 at all, but text")],
    ["has nothing behind its type", type],
    ["has items", Buffer.concat([type, box("meta", Buffer.alloc(8)), media])],
    ["is cut short", indexFirst.subarray(0, -3)],
    ["has more offsets than its index", Buffer.concat([type, stbl(box("stco", be32(0, 9, 1)))])],
    [
      "has too many offsets",
      Buffer.concat([type, stbl(box("stco", be32(0, 600_000), Buffer.alloc(2_400_000)))]),
    ],
    [
      "has too many boxes in its index",
      Buffer.concat([type, stbl(Buffer.concat(Array(30_000).fill(box("free"))))]),
    ],
    ["has too many boxes", Buffer.concat([type, ...Array(30_000).fill(box("free")), media])],
    ["has an offset too far", Buffer.concat([type, stbl(box("stco", be32(0, 1, 0xffff_fff0)))])],
  ])("that %s stays as it is", async (_, plain) => {
    expect(await marked(plain)).toBe("layout");
  });

  withCertificates("in large pieces is passed on whole", async () => {
    const plain = Buffer.concat([type, box("mdat", Buffer.alloc(24 * 1024 * 1024))]);
    const open = () => piecesOf(plain) as AsyncIterable<Buffer>;
    const index = stbl(box("free", Buffer.alloc(9 * 1024 * 1024, "index")));
    const large = Buffer.concat([type, index, media]);
    const withIndex = await whole(await marked(large, 1024 * 1024));
    expect(withIndex.subarray(-index.length).equals(large.subarray(-index.length))).toBe(true);
    const bytes = await whole(await markMp4(open, mark));
    expect(bytes.subarray(-1024).equals(plain.subarray(-1024))).toBe(true);
    expect(readOrigin(bytes.subarray(0, 64 * 1024), "video/mp4")).toEqual(said);
  });
});

describe("a chain of certificates", () => {
  withCertificates("is accepted while it is valid", () => {
    const now = Date.now();
    expect(chainFault(pair.cert, now)).toBeUndefined();
    expect(chainFault(pair.cert)).toBeUndefined();
    const days = (count: number) => now + count * 24 * 3_600_000;
    expect(chainFault(pair.cert, days(2))).toMatch(/^was valid until \d{4}-\d\d-\d\d$/);
    expect(chainFault(pair.cert, days(-2))).toMatch(/^is valid from /);
    expect(chainFault(pair.cert, undefined)).toBeUndefined();
  });

  withCertificates("is refused where no reader would accept it", async () => {
    const [own = "", ca = ""] = pair.cert.split(/(?<=-----END CERTIFICATE-----\n)/);
    const server = await authority.issueSigner("Example", "serverAuth");
    const other = await folder.authority("other");
    expect(chainFault(pair.key + pair.cert)).toMatch(/^holds a private key/);
    expect(chainFault("")).toMatch(/^has no certificate/);
    expect(chainFault(own.replace("MII", "MIX"))).toMatch(/^has no certificate/);
    expect(chainFault(ca)).toMatch(/^begins with an authority's/);
    expect(chainFault(server.cert)).toMatch(/^is not issued for/);
    expect(chainFault(own + other.ca)).toMatch(/^is not in order/);
    expect(chainFault(own + ca.repeat(4))).toMatch(/^has more than 4 certificates/);
    expect(chainFault(own)).toBeUndefined();
  });

  withCertificates("has one key", async () => {
    const other = await authority.issueSigner("Example Studio");
    expect(() => createSigner(pair.cert, other.key)).toThrow(SignerKeyError);
    expect(() => createSigner(pair.cert, "no key")).toThrow(SignerKeyError);
    const { privateKey } = generateKeyPairSync("ed25519");
    const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    expect(() => createSigner(pair.cert, key)).toThrow(SignerKeyError);
  });
});
