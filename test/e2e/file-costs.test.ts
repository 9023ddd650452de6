import { afterAll, describe, expect, test } from "vitest";
import { pagesOf, pdfOf, samplePdf, wavOf } from "../../services/text/measuring/samples.fixture.ts";
import { type Caller, refusalOf } from "./caller.ts";
import {
  asked,
  chatFile,
  inputAudio,
  inputFile,
  pdf,
  said,
  wav,
  withReaders,
} from "./file-parts.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ catalog: withReaders });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const caller = isOwnWorld ? await world.caller() : ({} as Caller);
const refusal = "400 invalid_request_error";

describe("what files cost", () => {
  /** What is held for a request while upstream thinks about it. */
  async function holdOf(path: string, body: object): Promise<number> {
    const payer = await world.caller();
    world.play({ kind: "hang" });
    const leaving = new AbortController();
    const sent = payer.post(path, body, { signal: leaving.signal }).catch(() => {});
    await world.upstream.request(1);
    const { reserved } = await payer.balance();
    leaving.abort();
    await sent;
    return reserved;
  }
  /** Of the same request with a part of so few words as there are in the labels of a file. */
  const added = async (part: object, model = "reader") => {
    const body = (...parts: object[]) => ({ ...asked(...parts), model });
    const labels = JSON.parse(JSON.stringify(part), (name, value) =>
      name === "file_data" || name === "data" ? "" : value,
    );
    const [whole, without] = [
      await holdOf("/responses", body(part)),
      await holdOf("/responses", body()),
    ];
    return whole - without - JSON.stringify(labels).length;
  };

  test("is held by pages and the text on them, never by their base64", async () => {
    const held = await added(inputFile(pdf));
    // Eleven letters on three pages.
    expect(held).toBeGreaterThanOrEqual(3_011);
    expect(held).toBeLessThan(3_100);
    const words = "Many words on a page. ".repeat(200);
    const dense = await added(inputFile(samplePdf([words])));
    expect(dense).toBeGreaterThanOrEqual(1_000 + words.length);
    expect(dense).toBeLessThan(1_100 + words.length);
    const silent = await added(inputFile(pdf), "reader-silent");
    expect(silent).toBeGreaterThanOrEqual(3 * 4_096);
    expect(silent).toBeLessThan(3 * 4_096 + 100);
  });

  test("is held by pages that a lying file hides", async () => {
    const pages = pagesOf(Array(40).fill(""));
    const lying = pdfOf({ ...pages, 2: "<</Type/Pages/Count 1/Kids[10 0 R]>>" });
    const held = await added(inputFile(lying));
    expect(held).toBeGreaterThanOrEqual(40_000);
    expect(held).toBeLessThan(40_100);
  });

  test("is the whole window where the text on the pages has no bound", async () => {
    const odd = pdfOf({
      ...pagesOf(["x"]),
      11: { value: "<</Filter/LZWDecode>>", stream: Buffer.from("x") },
    });
    const whole = await holdOf("/responses", asked(inputFile(odd)));
    expect(whole).toBe(200_000 + 4_000);
  });

  test("is held by seconds", async () => {
    const second = await added(inputAudio(wavOf(8_000 * 100)));
    expect(second).toBeGreaterThanOrEqual(2_000);
    expect(second).toBeLessThan(2_100);
    for (const claimed of [8, 1 << 30]) {
      expect(await added(inputAudio(wavOf(8_000 * 100, { claimed })))).toBe(second);
    }
    const silent = await added(inputAudio(wavOf(8_000 * 100)), "reader-silent");
    expect(silent).toBeGreaterThanOrEqual(5_000);
    expect(silent).toBeLessThan(5_100);
    const short = await added(inputAudio(wavOf(8)), "reader-silent");
    expect(short).toBeGreaterThanOrEqual(768);
  });

  test("in chat is the same", async () => {
    for (const model of ["reader", "reader-legacy"]) {
      const body = (...parts: object[]) => ({ ...said(...parts), model });
      const without = await holdOf("/chat/completions", body());
      const whole = await holdOf("/chat/completions", body(chatFile(pdf), inputAudio(wav)));
      expect(whole - without).toBeGreaterThanOrEqual(3_000 + 40);
      expect(whole - without).toBeLessThan(3_000 + 40 + 500);
    }
  });

  test("is what upstream reports", async () => {
    const payer = await world.caller();
    world.play({
      kind: "ok",
      usage: { input_tokens: 2_345, output_tokens: 1, total_tokens: 2_346 },
    });
    const answer = await payer.post("/responses", asked(inputFile(pdf)));
    expect(answer.json.usage.costUsdMicros).toBe(2_345 + 4);
    expect((await payer.balance()).available).toBe(10_000_000 - 2_349);
  });

  test("is counted where upstream reports nothing", async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", usage: null, deltas: ["x"] });
    const costOf = async (...parts: object[]) => {
      const before = await payer.balance();
      expect((await payer.post("/responses", asked(...parts))).status).toBe(200);
      return before.available - (await payer.settled()).available;
    };
    const without = await costOf();
    const pages = (await costOf(inputFile(pdf))) - without;
    expect(pages).toBeGreaterThanOrEqual(3_003);
    expect(pages).toBeLessThan(3_030);
    const seconds = (await costOf(inputAudio(wav))) - without;
    expect(seconds).toBeGreaterThanOrEqual(40);
    expect(seconds).toBeLessThan(60);
  });

  test("is told before", async () => {
    const { json } = await caller.post("/responses/input_tokens", asked(inputFile(pdf)));
    expect(json.input_tokens).toBeGreaterThanOrEqual(3_003);
    expect(json.input_tokens).toBeLessThan(3_050);
    expect(json.costUsdMicros).toBe(json.input_tokens);
    expect(json.holdUsdMicros).toBe(await holdOf("/responses", asked(inputFile(pdf))));
  });

  test("is not held for what cannot fit the window", async () => {
    const seen = world.play();
    const long = samplePdf(Array(250).fill(""));
    expect(refusalOf(await caller.post("/responses", asked(inputFile(long))))).toBe(
      `${refusal} context_length_exceeded input`,
    );
    expect(seen).toHaveLength(0);
  });

  test("a repeat under an idempotency key costs nothing, and another file is another request", async () => {
    const seen = world.play();
    const post = (bytes: Buffer) =>
      caller.post("/responses", asked(inputFile(bytes)), { idempotencyKey: "files-1" });
    const first = await post(pdf);
    const again = await post(pdf);
    expect(again.text).toBe(first.text);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(seen).toHaveLength(1);
    expect((await post(samplePdf(["one", "two", "four"]))).json.error.code).toBe(
      "idempotency_key_reused",
    );
  });
});
