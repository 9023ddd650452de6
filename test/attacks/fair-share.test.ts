import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { type MediaWorld, startMediaWorld, submit } from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { openRaw, type RawConnection } from "../edge/raw.ts";
import { promptlyInTurns } from "../support/promptly.ts";
import { until } from "../support/until.ts";

/** Milliseconds by which the worst attack of one account may delay another account's request. */
const graceMs = 1_000;

let media: MediaWorld;
let port: number;
let hostile: Caller;
let other: Caller;

oneProcessOnly();
beforeAll(async () => {
  media = await startMediaWorld();
  port = Number(new URL(media.world.baseUrl).port);
  hostile = await media.world.caller({ usdMicros: 10_000_000n, credits: 1_000n });
  other = await media.world.caller({ usdMicros: 10_000_000n, credits: 1_000n });
});
afterAll(() => media?.[Symbol.asyncDispose]());

/**
 * Sends requests of another account: alone, and while `attack` goes on, which ends with its stack. The status must be the same, and the
 * time within the grace.
 */
async function expectNoHarm(
  ask: () => Promise<{ status: number }>,
  attack: (stack: AsyncDisposableStack) => Promise<void>,
): Promise<void> {
  await ask();
  await promptlyInTurns(graceMs, async ({ idle, real }) => {
    const quiet = await idle(ask);
    await using stack = new AsyncDisposableStack();
    await attack(stack);
    const harmed = await real(ask);
    expect(harmed.status).toBe(quiet.status);
  });
}

function upload(caller: Caller): Promise<{ status: number }> {
  const form = new FormData();
  form.append("purpose", "vision");
  form.append("file", new Blob([new Uint8Array(media.png)]), "a.png");
  const headers = { authorization: `Bearer ${caller.key}` };
  return fetch(`${media.world.baseUrl}/files`, { method: "POST", body: form, headers });
}

/** Watches a job until its first event. */
async function firstEvent(caller: Caller, { id }: { id: string }): Promise<{ status: number }> {
  const leaving = new AbortController();
  const answer = await fetch(`${media.world.baseUrl}/jobs/${id}/events`, {
    headers: { authorization: `Bearer ${caller.key}` },
    signal: leaving.signal,
  });
  await answer.body?.getReader().read();
  leaving.abort();
  return { status: answer.status };
}

async function connections(count: number, stack: AsyncDisposableStack): Promise<RawConnection[]> {
  const all = await Promise.all(Array.from({ length: count }, () => openRaw(port)));
  stack.defer(() => {
    for (const one of all) one[Symbol.dispose]();
  });
  return all;
}

describe("another account is served while one", () => {
  test("keeps 300 uploads half sent", async () => {
    await expectNoHarm(
      () => upload(other),
      async (stack) => {
        const all = await connections(300, stack);
        const head = [
          "POST /v1/files HTTP/1.1",
          "host: x",
          `authorization: Bearer ${hostile.key}`,
          "content-type: multipart/form-data; boundary=b",
          "content-length: 100000",
          "",
          '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nvision',
          '--b\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\nhalf',
        ].join("\r\n");
        for (const one of all) one.send(head);
        await until("some to be refused", async () =>
          all.some((one) => one.received().startsWith("HTTP/1.1 429")),
        );
      },
    );
  });

  test("has 200 speeches under way", async () => {
    const speech = { model: "scripted-speech", input: "Hello", voice: "alloy" };
    await expectNoHarm(
      () => other.post("/speech/generations", speech),
      async (stack) => {
        // A speech goes on without its caller. In the end the upstream answers.
        const over = Promise.withResolvers<void>();
        media.media.always("POST /audio/speech", {
          kind: "custom",
          async handle(_seen, answer) {
            await over.promise;
            answer.writeHead(400).end();
          },
        });
        const before = media.media.seen("POST /audio/speech").length;
        const leaving = new AbortController();
        const { signal } = leaving;
        const asked = Array.from({ length: 200 }, () =>
          hostile.post("/speech/generations", speech, { signal }).catch(() => ({ status: 0 })),
        );
        stack.defer(async () => {
          leaving.abort();
          await Promise.all(asked);
          over.resolve();
          await hostile.settled();
        });
        // After the first refusal, the account's whole share is in use.
        expect(await Promise.race(asked)).toMatchObject({ status: 429 });
        await until(
          "its share to be used",
          async () => media.media.seen("POST /audio/speech").length >= before + 64,
        );
        media.media.always("POST /audio/speech", undefined);
      },
    );
  });

  test("speaks the longest texts there are, slowly", async () => {
    const speech = { model: "speech-1", input: "Hi you", voice: "alloy" };
    await expectNoHarm(
      () => other.post("/speech/generations", speech),
      async (stack) => {
        const leaving = new AbortController();
        const { signal } = leaving;
        const worst = { ...speech, speed: 0.25, input: "9".repeat(4_096) };
        const before = (await hostile.balance()).reserved;
        const asked = Array.from({ length: 4 }, () =>
          hostile.post("/speech/generations", worst, { signal }).catch(() => ({ status: 0 })),
        );
        stack.defer(async () => {
          // The speech that has begun goes on, and the waiting ones end.
          leaving.abort();
          await Promise.all(asked);
          const settled = async () => (await hostile.balance()).reserved === before;
          await until("its last speech to end", settled, { withinMs: 60_000 });
        });
        const cost = 61_440;
        await until(
          "all to be held",
          async () => (await hostile.balance()).reserved >= before + 4 * cost,
        );
      },
    );
  });

  test("watches its jobs 2,500 times", async () => {
    media.media.always("POST /images/generations", { kind: "hang" });
    const image = { model: "scripted-image", prompt: "x", size: "64x64" };
    const mine = await submit(hostile, "images", image);
    const job = await submit(other, "images", image);
    await expectNoHarm(
      () => firstEvent(other, job),
      async (stack) => {
        const all = await connections(2_500, stack);
        const path = `/v1/jobs/${mine.id}/events`;
        const asked = `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${hostile.key}\r\n\r\n`;
        for (const one of all) one.send(asked);
        await until("answers to all", async () => all.every((one) => one.received() !== ""), {
          withinMs: 60_000,
        });
        const watching = all.filter((one) => one.received().startsWith("HTTP/1.1 200"));
        expect(watching.length).toBe(256);
        expect(all.every((one) => /^HTTP\/1\.1 (200|429)/.test(one.received()))).toBe(true);
      },
    );
    media.media.always("POST /images/generations", undefined);
  });

  test("keeps an upstream's places with streams that it does not read", async () => {
    const body = { model: "pair", input: "Hi" };
    await expectNoHarm(
      () => other.post("/responses", body),
      async (stack) => {
        const seen = media.world.play({ kind: "ok", break: { how: "hang", after: 1 } });
        const leaving = new AbortController();
        stack.defer(async () => {
          leaving.abort();
          await hostile.settled();
        });
        const openOne = () =>
          hostile.open("/responses", body, { signal: leaving.signal }).catch(() => {});
        void openOne();
        await until("its first stream", async () => seen.length > 0);
        const { reserved } = await hostile.balance();
        for (let at = 0; at < 2; at++) void openOne();
        // Each has its money held, and has its place or waits for it.
        await until("the others", async () => (await hostile.balance()).reserved >= 3 * reserved);
        media.world.play();
      },
    );
  });

  test("has prompts counted that do not fit", async () => {
    const ask = (input: string) => ({ model: "chat-1", input, max_output_tokens: 16 });
    // All words differ, because the tokenizer remembers words.
    let at = 0;
    const words = (count: number) =>
      Array.from({ length: count }, () => (at++ * 7_919_317).toString(36)).join(" ");
    const tooLong = ask(words(90_000));
    // It has more bytes than the window has tokens, so it is counted too.
    const fitting = ask(words(18_000));
    await expectNoHarm(
      () => other.post("/responses", fitting),
      async (stack) => {
        let isOver = false;
        let refused = 0;
        const loop = async () => {
          while (!isOver) {
            const { status, json } = await hostile.post("/responses", tooLong);
            expect([400, 429]).toContain(status);
            if (status === 400) expect(json.error.code).toBe("context_length_exceeded");
            refused++;
          }
        };
        const loops = Array.from({ length: 32 }, loop);
        stack.defer(async () => {
          isOver = true;
          await Promise.all(loops);
        });
        await until("its first refusals", async () => refused >= 2, { withinMs: 60_000 });
      },
    );
  });
});
