import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { slowness } from "../support/reference-machine.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

// A job's texts have up to 390 KB, and its document shows none of them. Reading it costs the same as for any other job.

const reads = 150;
/** Milliseconds of a core by which a read of the longest job may cost more than one of the shortest. */
const mostMoreMs = 1;
/** The unit of processes' times in /proc. */
const tickMs = 10;

let watched: WatchedProcess;
let key: string;
beforeAll(async () => {
  watched = await startWatched({
    // No server is at this address, so jobs wait.
    upstreams: { gone: { protocol: "fal", baseUrl: "http://127.0.0.1:9" } },
    models: [
      {
        ...{ id: "song", kind: "music", upstream: "gone", creditPrice: 1 },
        call: {
          model: "fal-ai/song",
          input: { prompt: "${description}", lyrics: "${lyrics}", negative: "${negativePrompt}" },
          output: "audio.url",
        },
      },
    ],
  });
  ({ key } = await watched.account());
});
afterAll(() => watched?.[Symbol.asyncDispose]());

async function submit(text: string): Promise<string> {
  const answer = await fetch(`${watched.baseUrl}/music/generations`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      ...{ model: "song", mode: "lyrics", title: "Waves" },
      ...{ description: text, lyrics: text, negativePrompt: text },
    }),
  });
  expect(answer.status).toBe(202);
  return ((await answer.json()) as { id: string }).id;
}

/** The CPU time of the process so far, in ms. */
async function computedMs(): Promise<number> {
  const stat = await readFile(`/proc/${watched.pid}/stat`, "utf8");
  const [user, system] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14);
  return (Number(user) + Number(system)) * tickMs;
}

/** The average cost of one read in ms. */
async function costOf(path: string): Promise<number> {
  const fromMs = await computedMs();
  for (let read = 0; read < reads; read++) {
    const answer = await fetch(`${watched.baseUrl}${path}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
  }
  return ((await computedMs()) - fromMs) / reads;
}

test.skipIf(process.platform !== "linux")(
  "reading the longest job costs hardly more than reading a short one",
  { timeout: 240_000 },
  async () => {
    const short = await submit("sea");
    const long = await submit("\u{1f600}".repeat(32_000));
    await costOf(`/music/generations/${short}`);
    const [ofShort, ofLong] = [
      await costOf(`/music/generations/${short}`),
      await costOf(`/music/generations/${long}`),
    ];
    process.stdout.write(`${ofShort.toFixed(2)} ms a short job, ${ofLong.toFixed(2)} a long one\n`);
    expect(ofLong - ofShort).toBeLessThan(mostMoreMs * slowness());
  },
);
