import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { openRaw } from "./raw.ts";
import { type EdgeParts, type EdgeWorld, startEdge } from "./world.ts";

const stored = {
  fileId: "file_2",
  fileName: "cat.png",
  purpose: "vision",
  mimeType: "image/png",
  sizeBytes: 9n,
  sha256: "ab",
  width: 3,
  height: 4,
  createTime: timestampFromMs(1_700_000_000_500),
};

let edge: EdgeWorld;
let uploads: { header?: unknown; sizes: number[]; bytes: Buffer; end: string }[];
const media = {
  async uploadFile(parts, _context: HandlerContext) {
    const upload = {
      sizes: [] as number[],
      bytes: Buffer.alloc(0),
      end: "open",
    } as (typeof uploads)[0];
    uploads.push(upload);
    try {
      for await (const { part } of parts) {
        if (part.case === "header") upload.header = part.value;
        if (part.case === "header" && part.value.purpose === "full") {
          refuse(ErrorReason.UPLOAD_QUOTA_EXCEEDED);
        }
        if (part.case !== "chunk") continue;
        upload.sizes.push(part.value.length);
        upload.bytes = Buffer.concat([upload.bytes, part.value]);
      }
    } catch (error) {
      upload.end = "broken";
      throw error;
    }
    upload.end = "whole";
    if (upload.bytes.length === 13) refuse(ErrorReason.INVALID_REFERENCE_IMAGE);
    return { file: stored, replayed: upload.bytes.length === 14 };
  },
} satisfies EdgeParts["media"];
beforeAll(async () => {
  edge = await startEdge({ media });
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  uploads = [];
});

const codeOf = async (response: Response) =>
  ((await response.json()) as { error: { code: string } }).error.code;

describe("uploads", () => {
  const upload = (fields: [name: string, value: string | Blob, fileName?: string][], more = {}) => {
    const body = new FormData();
    for (const [name, value, fileName] of fields) {
      if (typeof value === "string") body.append(name, value);
      else body.append(name, value, fileName ?? "cat.png");
    }
    return edge.ask("/v1/files", { method: "POST", body, headers: more });
  };
  const image = (size: number) => new Blob([Buffer.alloc(size, "abc")], { type: "image/png" });

  test.each([
    ["purpose first", ["purpose", "file"]],
    ["file first, as SDKs send it", ["file", "purpose"]],
  ])("%s", async (_, order) => {
    const size = 3 * 1024 * 1024 + 5;
    const parts = { purpose: ["purpose", "vision"], file: ["file", image(size)] } as const;
    const fields = order.map((name) => parts[name as "file"]) as [string, Blob][];
    const response = await upload(fields, { "idempotency-key": "k1" });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      id: "file_2",
      object: "file",
      bytes: 9,
      created_at: 1_700_000_000,
      filename: "cat.png",
      purpose: "vision",
      status: "processed",
      expires_at: null,
      mimeType: "image/png",
      sha256: "ab",
      width: 3,
      height: 4,
    });
    const [got] = uploads;
    expect(got?.header).toMatchObject({
      fileName: "cat.png",
      purpose: "vision",
      idempotencyKey: "k1",
    });
    expect(got?.bytes.equals(Buffer.alloc(size, "abc"))).toBe(true);
    expect(Math.max(...(got?.sizes ?? []))).toBeLessThanOrEqual(1024 * 1024);
    expect(got?.end).toBe("whole");
  });

  test("a small file before its purpose is whole", async () => {
    const response = await upload([
      ["file", image(1_000)],
      ["purpose", "vision"],
    ]);
    expect(response.status).toBe(200);
    expect(uploads.map(({ bytes, end }) => [bytes.length, end])).toEqual([[1_000, "whole"]]);
  });

  test("and so is one that waits for room", async () => {
    await using crowded = await startEdge({
      media,
      settings: { maxBytesInFlight: 30 * 1024 * 1024 },
    });
    const first = await openRaw(crowded.port);
    const form = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n';
    first.send(
      `POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${crowded.key}\r\n` +
        `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n${form}half`,
    );
    await expect.poll(() => crowded.metrics.text()).toContain("genmesh_http_body_bytes 4\n");
    const body = new FormData();
    body.append("file", image(1_000), "cat.png");
    body.append("purpose", "vision");
    const asked = crowded.ask("/v1/files", { method: "POST", body });
    await expect.poll(() => uploads.length).toBe(1);
    first.socket.destroy();
    expect((await asked).status).toBe(200);
    expect(uploads.map(({ bytes, end }) => [bytes.length, end])).toEqual([[1_000, "whole"]]);
  });

  test("what the service refuses, and what it replays", async () => {
    const refused = await upload([
      ["purpose", "vision"],
      ["file", image(13)],
    ]);
    expect([refused.status, await codeOf(refused)]).toEqual([400, "invalid_reference_image"]);
    const replayed = await upload([
      ["purpose", "vision"],
      ["file", image(14)],
    ]);
    expect(replayed.headers.get("idempotency-replayed")).toBe("true");
  });

  test.each<[name: string, fields: [string, string | Blob][], code: string, param: string | null]>([
    ["no purpose", [["file", image(5)]], "missing_required_parameter", "purpose"],
    [
      "an empty purpose",
      [
        ["purpose", ""],
        ["file", image(5)],
      ],
      "missing_required_parameter",
      "purpose",
    ],
    ["no file", [["purpose", "vision"]], "missing_required_parameter", "file"],
    [
      "a text for a file",
      [
        ["purpose", "vision"],
        ["file", "text"],
      ],
      "invalid_value",
      "file",
    ],
    [
      "a long purpose",
      [
        ["purpose", "p".repeat(65)],
        ["file", image(5)],
      ],
      "invalid_value",
      "purpose",
    ],
    [
      "another file",
      [
        ["purpose", "v"],
        ["mask", image(5)],
      ],
      "invalid_value",
      "mask",
    ],
    [
      "too many parts",
      [...Array.from({ length: 50 }, (_, i): [string, string] => [`f${i}`, "x"])],
      "invalid_value",
      null,
    ],
  ])("%s", async (_, fields, code, param) => {
    const response = await upload(fields);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code, param } });
    expect(uploads.filter((one) => one.end === "whole")).toEqual([]);
  });

  test("a refusal in the middle of a large upload reaches its caller", async () => {
    const response = await upload([
      ["purpose", "full"],
      ["file", image(12 * 1024 * 1024)],
    ]);
    expect([response.status, await codeOf(response)]).toEqual([400, "upload_quota_exceeded"]);
    await edge.clock.advance(2_000);
  });

  test("a second file breaks the upload of the first", async () => {
    const response = await upload([
      ["purpose", "v"],
      ["file", image(9)],
      ["file", image(9)],
    ]);
    expect(await response.json()).toMatchObject({
      error: { code: "invalid_value", param: "file" },
    });
    expect(uploads.map((one) => one.end)).not.toContain("whole");
  });

  test("over 20 MiB before its purpose is known is too large", async () => {
    const response = await upload([
      ["file", image(21 * 1024 * 1024)],
      ["purpose", "vision"],
    ]);
    expect(response.status).toBe(400);
    expect(await codeOf(response)).toBe("image_too_large");
    expect(uploads).toEqual([]);
  });

  test("JSON, no boundary, and a form that is cut off", async () => {
    expect((await edge.post("/v1/files", {})).status).toBe(415);
    const post = (type: string, body: string) =>
      edge.ask("/v1/files", { method: "POST", body, headers: { "content-type": type } });
    expect((await post("multipart/form-data", "x")).status).toBe(400);
    const cut =
      '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nvision\r\n' +
      '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\nhalf';
    const response = await post("multipart/form-data; boundary=b", cut);
    expect(response.status).toBe(400);
    expect(await codeOf(response)).toBe("invalid_value");
    expect(uploads.map((one) => one.end)).not.toContain("whole");
  });

  test("a caller that leaves in the middle leaves a broken stream", async () => {
    const raw = await openRaw(edge.port);
    raw.send(
      `POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${edge.key}\r\n` +
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n" +
        '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nvision\r\n' +
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n' +
        "x".repeat(50_000),
    );
    await expect.poll(() => uploads[0]?.bytes.length).toBeGreaterThan(1_000);
    raw.socket.destroy();
    await expect.poll(() => uploads[0]?.end).toBe("broken");
  });
});
