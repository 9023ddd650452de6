import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { type EdgeParts, type EdgeWorld, startEdge } from "./world.ts";

// All routes that take a form treat names of files, and empty fields, by the same rules.

const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
let edge: EdgeWorld;
/** The services' requests: bodies of jobs and texts, headers of uploads. */
let told: { body: Record<string, unknown>; fileName: string | undefined }[];
beforeAll(async () => {
  edge = await startEdge({
    media: {
      submitJob({ body }) {
        told.push({ body: JSON.parse(Buffer.from(body).toString()), fileName: undefined });
        return refuse(ErrorReason.UNSUPPORTED_PARAMETER);
      },
      async uploadFile(parts, _context: HandlerContext) {
        let fileName = "";
        for await (const { part } of parts) {
          if (part.case === "header") fileName = part.value.fileName;
        }
        told.push({ body: {}, fileName });
        const file = { fileId: "file_2", fileName, createTime: timestampFromMs(0) };
        return { file, replayed: false };
      },
    } satisfies EdgeParts["media"],
    text: {
      async *streamGenerate({ body }) {
        const read = JSON.parse(Buffer.from(body).toString());
        told.push({ body: read, fileName: read.file?.name });
        yield { part: { case: "complete", value: Buffer.from('{"text":"hi"}') } };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  told = [];
});

/** A part of a form: the text after `form-data`, and its bytes. */
type Part = readonly [disposition: string, body: string | Buffer];

async function send(path: string, parts: readonly Part[]) {
  const pieces = parts.flatMap(([disposition, body]) => [
    Buffer.from(`--x\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`),
    Buffer.from(body),
    Buffer.from("\r\n"),
  ]);
  const answer = await edge.ask(`/v1${path}`, {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=x" },
    body: Buffer.concat([...pieces, Buffer.from("--x--\r\n")]),
  });
  const json = (await answer.json()) as { error?: { code: string; param: string } };
  return { status: answer.status, code: json.error?.code, param: json.error?.param };
}

const encoded = "Bild%20%C3%A4%20%E5%9B%BE%E7%89%87%20%F0%9F%A6%8A.png";
const whole = "Bild ä 图片 🦊.png";

/** Names of files in a client's request, and their decoded forms. */
const names: [what: string, sent: string, read: string][] = [
  ["ASCII", 'filename="cat.png"', "cat.png"],
  ["UTF-8 as it is", `filename="${whole}"`, whole],
  ["filename* alone", `filename*=UTF-8''${encoded}`, whole],
  ["filename* behind another", `filename="x.png"; filename*=UTF-8''${encoded}`, whole],
  ["filename* before another", `filename*=utf-8'de'${encoded}; filename="x.png"`, whole],
  [".NET's two", `filename="=?UTF-8?B?eA==?="; filename*=utf-8''${encoded}`, whole],
  ["filename* that is no UTF-8", "filename=\"x.png\"; filename*=UTF-8''%FF.png", "x.png"],
  ["filename* of folders and control characters", "filename*=UTF-8''..%2Fa%0D%0Ab%00%22", 'ab"'],
  ["control characters and direction marks", 'filename="a\u0001b\u202ec.png"', "abc.png"],
  ["a long one", `filename*=UTF-8''${"%F0%9F%A6%8A".repeat(300)}`, "🦊".repeat(255)],
  ["none that can be read", "filename*=nonsense", ""],
];

describe("the name of a form's file", () => {
  test.each(names)("%s at /files", async (_, name, read) => {
    const parts: Part[] = [
      ['name="purpose"', "vision"],
      [`name="file"; ${name}`, png],
    ];
    expect((await send("/files", parts)).status).toBe(200);
    expect((await send("/files", parts.toReversed())).status).toBe(200);
    expect(told.map(({ fileName }) => fileName)).toEqual([read || "upload", read || "upload"]);
  });

  test.each(names)("%s at /audio/transcriptions", async (_, name, read) => {
    const { status } = await send("/audio/transcriptions", [
      ['name="model"', "ears"],
      [`name="file"; ${name}`, "sound"],
    ]);
    expect([status, told[0]?.fileName]).toEqual([200, read]);
  });

  test.each(names)("%s at /images/edits", async (_, name) => {
    await send("/images/edits", [
      ['name="model"', "image-1"],
      [`name="image"; ${name}`, png],
    ]);
    expect(told[0]?.body.input_reference).toHaveLength(1);
  });
});

describe("what a form leaves empty is absent", () => {
  const file = ['name="file"; filename="a.wav"', "sound"] as const;
  const image = ['name="image"; filename="a.png"', png] as const;
  const unchosen = 'filename=""';

  test("at /audio/transcriptions", async () => {
    const optional = ["language", "prompt", "response_format", "temperature", "stream"];
    const lists = ["include[]", "timestamp_granularities[]", "chunking_strategy"];
    const { status } = await send("/audio/transcriptions", [
      ['name="model"', "ears"],
      ...[...optional, ...lists].map((name): Part => [`name="${name}"`, ""]),
      file,
      [`name="second"; ${unchosen}`, ""],
    ]);
    expect(status).toBe(200);
    expect(told[0]?.body).toEqual({ model: "ears", file: expect.any(Object) });
  });

  test("at /images/edits", async () => {
    const optional = ["n", "size", "seed", "response_format", "stream", "user", "quality"];
    await send("/images/edits", [
      ['name="model"', "image-1"],
      ...optional.map((name): Part => [`name="${name}"`, ""]),
      ['name="referenceFileIds"', ""],
      [`name="mask"; ${unchosen}`, ""],
      image,
      [`name="image[1]"; ${unchosen}`, ""],
    ]);
    expect(told[0]?.body).toEqual({ model: "image-1", input_reference: [expect.any(Object)] });
  });

  test("at /files", async () => {
    const { status } = await send("/files", [
      ['name="purpose"', ""],
      ['name="purpose"', "vision"],
      ['name="purpose"', ""],
      ['name="expires_after[seconds]"', ""],
      ['name="file"; filename="a.png"', png],
      ['name="file"', ""],
    ]);
    expect([status, told[0]?.fileName]).toEqual([200, "a.png"]);
  });

  test.each<[path: string, parts: Part[], param: string]>([
    [
      "/audio/transcriptions",
      [
        ['name="model"', "ears"],
        [`name="file"; ${unchosen}`, ""],
      ],
      "file",
    ],
    [
      "/audio/transcriptions",
      [
        ['name="model"', "ears"],
        ['name="file"', ""],
      ],
      "file",
    ],
    ["/files", [['name="purpose"', ""], file], "purpose"],
    ["/files", [file, ['name="purpose"', ""]], "purpose"],
    [
      "/files",
      [
        ['name="purpose"', "vision"],
        [`name="file"; ${unchosen}`, ""],
      ],
      "file",
    ],
    [
      "/files",
      [
        [`name="file"; ${unchosen}`, ""],
        ['name="purpose"', "vision"],
      ],
      "file",
    ],
    [
      "/files",
      [
        ['name="purpose"', "vision"],
        ['name="file"', ""],
      ],
      "file",
    ],
  ])("and missing at %s where it is needed: %j", async (path, parts, param) => {
    const refused = await send(path, parts);
    expect(refused).toEqual({ status: 400, code: "missing_required_parameter", param });
  });
});
