import sharp from "sharp";
import { afterAll, describe, expect, test } from "vitest";
import { noise } from "#kit/images/samples.fixture.ts";
import { refusalOf } from "./caller.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const model = isOwnWorld ? "scripted" : "chat-1";

const plain = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: "#456" } });
const uriOf = (bytes: Buffer, type = "image/png") =>
  `data:${type};base64,${bytes.toString("base64")}`;
const png = await plain(64, 32).png().toBuffer();
const jpeg = await plain(64, 32).jpeg().toBuffer();

const part = (image_url: string, fields: object = {}) => ({
  type: "input_image",
  image_url,
  ...fields,
});
const bodyOf = (...parts: object[]) => ({
  model,
  input: [{ role: "user", content: [{ type: "input_text", text: "What is it?" }, ...parts] }],
});
const ask = (...parts: object[]) => caller.post("/responses", bodyOf(...parts));
const refused = (code: string, index = 1) =>
  `400 invalid_request_error ${code} input[0].content[${index}].image_url`;

const noImages: [name: string, url: string][] = [
  ["a GIF", uriOf(await plain(8, 8).gif().toBuffer(), "image/gif")],
  ["a WebP", uriOf(await plain(8, 8).webp().toBuffer(), "image/webp")],
  ["a WebP that says PNG", uriOf(await plain(8, 8).webp().toBuffer())],
  [
    "a PNG that was cut",
    uriOf((await noise(300, 300).png({ compressionLevel: 0 }).toBuffer()).subarray(0, 50_000)),
  ],
  ["a JPEG that was cut", uriOf((await noise(300, 300).jpeg().toBuffer()).subarray(0, 9_000))],
  ["a PNG's head and nothing more", uriOf(png.subarray(0, 33))],
  ["text", uriOf(Buffer.from("no image"))],
  ["no bytes", "data:image/png;base64,"],
  ["no base64", "data:image/png;base64,&&&&"],
  ["no data URI", "data:"],
  ["an SVG", uriOf(Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"), "image/svg+xml")],
  ["http", "http://example.com/a.png"],
  ["a file", "file:///etc/passwd"],
  ["no URL", "a.png"],
  ["the loopback", "https://127.0.0.1/a.png"],
  ["the loopback, otherwise written", "https://0x7f.1/a.png"],
  ["a private address", "https://10.1.2.3/a.png"],
  ["the metadata service", "https://169.254.169.254/latest"],
  ["IPv6 loopback", "https://[::1]/a.png"],
  ["IPv4 in IPv6", "https://[::ffff:10.0.0.1]/a.png"],
  ["a local name", "https://localhost/a.png"],
  ["a name of the cluster", "https://minio.default.svc.cluster.local/a.png"],
];

describe("images of a request", () => {
  test("are seen by the builtin model", async () => {
    const body = { ...bodyOf(part(uriOf(png)), part(uriOf(jpeg, "image/jpeg"))), model: "chat-1" };
    const { status, json } = await caller.post("/responses", body);
    expect(status).toBe(200);
    const { text } = json.output[0].content[0];
    expect(text).toMatch(/PNG.*64.*32/s);
    expect(text).toMatch(/JPEG/);
  });

  test.for(noImages)("%s is no image", async ([, url]) => {
    expect(refusalOf(await ask(part(url)))).toBe(refused("invalid_image"));
  });

  test("are at most 20", async () => {
    const twenty = Array<object>(20).fill(part(uriOf(png)));
    if (isOwnWorld) world.play();
    expect((await ask(...twenty)).status).toBe(200);
    const asked = await ask(...twenty, part(uriOf(png)));
    expect(refusalOf(asked)).toBe(
      "400 invalid_request_error image_limit_exceeded input[0].content[21]",
    );
  });
});

describe("images on their way up", () => {
  ownWorldOnly();

  test("stay what they are, with their detail", async () => {
    const seen = world.play();
    const parts = [
      part(uriOf(png), { detail: "high" }),
      part(uriOf(jpeg, "image/jpeg"), { detail: "low" }),
      part("https://example.com/a.png?x=1", { detail: "auto" }),
    ];
    expect((await ask(...parts)).status).toBe(200);
    expect(seen[0]?.body.input[0].content.slice(1)).toEqual(parts);
  });

  test("an upstream that wants them inline gets no address", async () => {
    const seen = world.play();
    const body = { ...bodyOf(part("https://127.0.0.1/a.png")), model: "inlining" };
    const asked = await caller.post("/responses", body);
    expect(refusalOf(asked)).toBe(refused("invalid_image"));
    expect(seen).toHaveLength(0);
  });

  test("are counted in patches of 32 pixels where upstream does not count", async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", usage: null, deltas: ["x"] });
    const costOf = async (...parts: object[]) => {
      const before = await payer.balance();
      await payer.post("/responses", bodyOf(...parts));
      return before.available - (await payer.settled()).available;
    };
    const without = await costOf();
    const picture = uriOf(await plain(320, 65).png().toBuffer());
    const words = await costOf({ type: "input_text", text: "" });
    // 10 by 3 patches. Its base64 does not count as text.
    expect((await costOf(part(picture))) - without).toBeGreaterThanOrEqual(30);
    expect((await costOf(part(picture))) - without).toBeLessThan(30 + (words - without) + 10);
    const two = await costOf(part(uriOf(await plain(640, 65).png().toBuffer())));
    expect(two - (await costOf(part(picture)))).toBe(30);
  });

  test("are charged by upstream's own count where it has one", async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", usage: { input_tokens: 800, output_tokens: 1, total_tokens: 801 } });
    await payer.post("/responses", bodyOf(part(uriOf(await plain(960, 960).png().toBuffer()))));
    expect((await payer.balance()).available).toBe(10_000_000 - 804);
  });
});

describe("an image file of the account", () => {
  ownWorldOnly();
  const upload = async (key: string) => {
    const form = new FormData();
    form.set("purpose", "vision");
    form.set("file", new Blob([new Uint8Array(png)]), "a.png");
    const headers = { authorization: `Bearer ${key}` };
    const sent = await fetch(`${world.baseUrl}/files`, { method: "POST", body: form, headers });
    return ((await sent.json()) as { id: string }).id;
  };

  test("goes up inline, and counts among the images", async () => {
    const file_id = await upload(caller.key);
    const seen = world.play();
    const { status } = await ask({ type: "input_image", file_id, detail: "low" });
    expect(status).toBe(200);
    expect(seen[0]?.body.input[0].content[1]).toEqual(part(uriOf(png), { detail: "low" }));
  });

  test("of another account is not there", async () => {
    const file_id = await upload((await world.caller()).key);
    const seen = world.play();
    for (const id of [file_id, "file_none", "../x"]) {
      expect(refusalOf(await ask({ type: "input_image", file_id: id }))).toBe(
        "400 invalid_request_error reference_not_found input[0].content[1].file_id",
      );
    }
    const both = { ...part(uriOf(png)), file_id: await upload(caller.key) };
    expect(refusalOf(await ask(both))).toBe(
      "400 invalid_request_error invalid_value input[0].content[1].file_id",
    );
    expect(seen).toHaveLength(0);
  });
});

describe("where private references are allowed", () => {
  ownWorldOnly();

  test("an address is fetched, checked and sent inline", async () => {
    await using open = await startWorld({ env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" } });
    const someone = await open.caller();
    const root = new URL(open.upstream.baseUrl).origin;
    const seen = open.play(({ path }) => ({
      kind: "custom",
      handle: (_seen, response) => {
        if (path === "/a.png") response.setHeader("content-type", "text/plain").end(png);
        else if (path === "/b.png") response.end("no image");
        else response.setHeader("content-type", "application/json").end('{"output":[]}');
      },
    }));
    const body = (url: string) => ({ ...bodyOf(part(url)), model: "inlining" });
    const good = await someone.post("/responses", body(`${root}/a.png`));
    expect(good.status).toBe(200);
    const fetched = seen.find(({ path }) => path === "/a.png");
    expect(fetched?.headers.authorization).toBeUndefined();
    const sent = seen.find(({ path }) => path === "/v1/responses");
    expect(sent?.body.input[0].content[1].image_url).toBe(uriOf(png));
    const bad = await someone.post("/responses", body(`${root}/b.png`));
    expect(refusalOf(bad)).toBe(refused("invalid_image"));
  });
});
