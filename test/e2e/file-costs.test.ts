import { afterAll, describe, expect, test } from "vitest";
import { wavOf } from "../../services/text/files/measuring/samples.fixture.ts";
import type { Caller } from "./caller.ts";
import {
  asked,
  chatFile,
  inputAudio,
  inputFile,
  pdf,
  pdfOf,
  said,
  wav,
  withReaders,
} from "./file-parts.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ catalog: withReaders });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const caller = isOwnWorld ? await world.caller() : ({} as Caller);

describe("what files cost", () => {
  /** The amount that is held for a request while the upstream works on it. */
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
  /** The hold for a part, compared with that for a text of as many words as a file's labels have. */
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

  test("of a PDF is the whole window, whatever is in it and however small", async () => {
    for (const bytes of [pdf, pdfOf(Buffer.alloc(1_000_000, 0xa5)), pdfOf("")]) {
      expect(await holdOf("/responses", asked(inputFile(bytes)))).toBe(200_000 + 4_000);
    }
    const twice = asked(inputFile(pdf), inputFile(pdf));
    expect(await holdOf("/responses", twice)).toBe(200_000 + 4_000);
  });

  const poor: [who: string, make: (micros: bigint) => Promise<Caller>, code: string][] = [
    ["a wallet", (usdMicros) => world.caller({ usdMicros }), "402 insufficient_balance"],
    [
      "a key",
      async (limit) => world.withKey(await world.caller(), { monthlyUsdMicrosLimit: limit }),
      "403 key_limit_exceeded",
    ],
  ];
  test.for(poor)("%s below that is told how much it takes", async ([, make, code]) => {
    const seen = world.play();
    const payer = await make(202_000n);
    const body = { ...asked(inputFile(pdf)), max_output_tokens: 1_000 };
    const { status, json } = await payer.post("/responses", body);
    expect(`${status} ${json.error.code}`).toBe(code);
    const amounts = { requiredUsdMicros: 204_000, spendableUsdMicros: 202_000 };
    expect(json.error).toMatchObject({ ...amounts, maxOutputTokens: 500 });
    expect(seen).toHaveLength(0);
    const shorter = await payer.post("/responses", { ...body, max_output_tokens: 500 });
    expect(shorter.status).toBe(200);
  });
  test.for(poor)("%s below the window alone is told that no output would do", async (who) => {
    const [, make, code] = who;
    const seen = world.play();
    const payer = await make(199_999n);
    const { status, json } = await payer.post("/responses", asked(inputFile(pdf)));
    expect(`${status} ${json.error.code}`).toBe(code);
    expect(json.error.requiredUsdMicros).toBeGreaterThan(200_000);
    expect(json.error).toMatchObject({ spendableUsdMicros: 199_999, maxOutputTokens: 0 });
    expect(seen).toHaveLength(0);
  });

  test("who leaves before usage came pays for all that was held of the input", async () => {
    const payer = await world.caller();
    world.play({ kind: "hang" });
    const leaving = new AbortController();
    const sent = payer
      .post("/responses", asked(inputFile(pdf)), { signal: leaving.signal })
      .catch(() => {});
    await world.upstream.request(1);
    leaving.abort();
    await sent;
    expect((await payer.settled()).available).toBe(10_000_000 - 200_000);
  });

  test("is held by the seconds that a sound's bytes can be", async () => {
    // 300,044 bytes at 995 a second. The rate in the head of the file does not matter.
    for (const claimed of [8_000, 1 << 30]) {
      const held = await added(inputAudio(wavOf(300_000, { claimed })));
      expect(held).toBeGreaterThanOrEqual(302 * 20);
      expect(held).toBeLessThan(302 * 20 + 100);
    }
    const silent = await added(inputAudio(wavOf(300_000)), "reader-silent");
    expect(silent).toBeGreaterThanOrEqual(302 * 50);
    expect(silent).toBeLessThan(302 * 50 + 100);
    const short = await added(inputAudio(wavOf(8)), "reader-silent");
    expect(short).toBeGreaterThanOrEqual(768);
  });

  test("is the model's window at the most", async () => {
    const long = await holdOf("/responses", {
      ...asked(inputAudio(wavOf(15_000_000, { rate: 48_000 }))),
    });
    expect(long).toBe(200_000 + 4_000);
  });

  test("who leaves before usage came pays for a sound's own seconds", async () => {
    const payer = await world.caller();
    world.play({ kind: "hang" });
    const leaving = new AbortController();
    const sent = payer
      .post("/responses", asked(inputAudio(wavOf(300_000))), { signal: leaving.signal })
      .catch(() => {});
    await world.upstream.request(1);
    leaving.abort();
    await sent;
    const cost = 10_000_000 - (await payer.settled()).available;
    expect(cost).toBeGreaterThanOrEqual(38 * 20);
    expect(cost).toBeLessThan(38 * 20 + 100);
  });

  test("in chat is the same", async () => {
    for (const model of ["reader", "reader-legacy"]) {
      const body = (...parts: object[]) => ({ ...said(...parts), model });
      const without = await holdOf("/chat/completions", body());
      const whole = await holdOf("/chat/completions", body(chatFile(pdf), inputAudio(wav)));
      expect(whole).toBe(200_000 + 4_000);
      expect(whole).toBeGreaterThan(without);
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
    // A PDF counts as a text of its size.
    const large = (await costOf(inputFile(pdfOf(Buffer.alloc(40_000, 0xa5))))) - without;
    expect(large).toBeGreaterThanOrEqual(10_000);
    expect(large).toBeLessThan(10_050);
    const seconds = (await costOf(inputAudio(wav))) - without;
    expect(seconds).toBeGreaterThanOrEqual(40);
    expect(seconds).toBeLessThan(60);
  });

  test("is told before", async () => {
    const { json } = await caller.post("/responses/input_tokens", asked(inputFile(pdf)));
    expect(json.input_tokens).toBeGreaterThanOrEqual(pdf.length / 4);
    expect(json.input_tokens).toBeLessThan(pdf.length / 4 + 50);
    expect(json.costUsdMicros).toBe(json.input_tokens);
    expect(json.holdUsdMicros).toBe(await holdOf("/responses", asked(inputFile(pdf))));
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
    expect((await post(pdfOf("another"))).json.error.code).toBe("idempotency_key_reused");
  });
});
