import { once } from "node:events";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chat } from "../e2e/catalog.ts";
import { promptlyInTurns, type Turn } from "../support/promptly.ts";
import { slowness } from "../support/reference-machine.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

/** As many as one account may watch. */
const jobs = 256;
/** Milliseconds: the longest that the event loop may compute in one go beside them, and the median of another account's requests. */
const bounds = { loopMs: 250, medianMs: 250 };
const watchedForMs = 8_000;

// An upstream that takes each request, and never answers.
const upstream = createServer((request) => request.resume());
let watched: WatchedProcess;
let hostile: string;
let other: string;

beforeAll(async () => {
  await once(upstream.listen(0, "127.0.0.1"), "listening");
  const { port } = upstream.address() as AddressInfo;
  watched = await startWatched({
    upstreams: {
      studio: { protocol: "builtin", tokenDelayMs: 0 },
      mute: { protocol: "fal", baseUrl: `http://127.0.0.1:${port}` },
    },
    models: [
      chat("quick", { upstream: "studio" }),
      {
        ...{ id: "song", kind: "music", upstream: "mute", creditPrice: 1 },
        call: {
          model: "fal-ai/song",
          input: { prompt: "${description}", lyrics: "${lyrics}", negative: "${negativePrompt}" },
          output: "audio.url",
        },
      },
    ],
  });
  [hostile, other] = [(await watched.account()).key, (await watched.account()).key];
});
afterAll(async () => {
  await watched?.[Symbol.asyncDispose]();
  upstream.closeAllConnections();
  upstream.close();
});

function post(path: string, key: string, body: object): Promise<Response> {
  return fetch(`${watched.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** The longest texts that a job may have: 390 KB in their stored form. */
async function submit(): Promise<string> {
  const long = "\u{1f600}".repeat(32_000);
  const texts = { title: "Waves", description: long, lyrics: long, negativePrompt: long };
  const answer = await post("/music/generations", hostile, {
    ...{ model: "song", mode: "lyrics" },
    ...texts,
  });
  expect(answer.status).toBe(202);
  return ((await answer.json()) as { id: string }).id;
}

/** Opens the events of a job. Resolves with its first chunk. */
function watch(jobId: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${hostile}` };
    get(`${watched.baseUrl}/jobs/${jobId}/events`, { agent: false, headers, signal }, (answer) => {
      answer.setEncoding("utf8").once("data", resolve).on("error", reject);
    }).on("error", reject);
  });
}

/** Another account's requests, one after the other. */
async function askMeanwhile({ real }: Turn, isOver: () => boolean): Promise<void> {
  for (let at = 0; !isOver(); at++) {
    const status = await real(async () => {
      const answer = await post("/responses", other, { model: "quick", input: `Hi ${at}` });
      await answer.text();
      return answer.status;
    });
    expect(status).toBe(200);
    await new Promise((go) => setTimeout(go, 50));
  }
}

test("another account is served while one watches all its long jobs", {
  timeout: 240_000,
}, async () => {
  const ids: string[] = [];
  const submitting = async () => {
    while (ids.length < jobs) ids.push(await submit());
  };
  await Promise.all([submitting(), submitting()]);
  await promptlyInTurns(bounds.medianMs, takeTurn, { of: "median" });

  async function takeTurn(turn: Turn): Promise<void> {
    const leave = new AbortController();
    await watched.worstDelayMs();
    let isOver = false;
    const asking = askMeanwhile(turn, () => isOver);
    const watching = ids.slice(0, jobs).map((jobId) => watch(jobId, leave.signal));
    for (const said of await Promise.all(watching))
      expect(said).toMatch(/"status":"(queued|running)"/);
    await new Promise((go) => setTimeout(go, watchedForMs));
    isOver = true;
    await asking;
    leave.abort();
    expect(await watched.worstDelayMs()).toBeLessThan(bounds.loopMs * slowness());
  }
});
