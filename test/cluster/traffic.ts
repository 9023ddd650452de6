// Load for the cluster's test: streams and image jobs through the gateway until SIGTERM. Then it waits for every accepted job. Prints one
// JSON object. Exits with 1 where a request failed, a job was lost or the money does not add up.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:8080/v1" },
    // As much as two cores can handle beside the cluster itself. More would test the load, not the upgrade.
    streams: { type: "string", default: "4" },
    submitters: { type: "string", default: "1" },
  },
});
const key = process.env.KEY ?? "";
/** Milliseconds for one request, and for the accepted jobs after the load. */
const [requestTimeoutMs, jobsTimeoutMs] = [60_000, 240_000];
/** Milliseconds between two requests of one caller. */
const [streamPauseMs, submissionPauseMs] = [500, 2_000];
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

const failures: string[] = [];
const accepted = new Map<string, string>();
const counts = { streams: 0, submissions: 0, completed: 0, failed: 0, lost: 0 };
/** Milliseconds of each stream to its first byte, and of each submission to its answer. */
const waits = { stream: [] as number[], submission: [] as number[] };

function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  return fetch(`${values.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(requestTimeoutMs),
  });
}

/** Repeats `one`. An error of it is a failed request. */
async function keepOn(what: string, one: () => Promise<void>): Promise<void> {
  while (!stop.signal.aborted) {
    try {
      await one();
    } catch (error) {
      const { message, cause } = error as Error;
      failures.push(`${new Date().toISOString()} ${what}: ${message} ${cause ?? ""}`.trim());
      await sleep(100);
    }
  }
}

async function stream(): Promise<void> {
  const sentMs = performance.now();
  const answer = await send("POST", "/responses", {
    model: "chat-1",
    input: "Count to ten.",
    stream: true,
  });
  waits.stream.push(performance.now() - sentMs);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`);
  if (!text.includes("event: response.completed")) throw new Error(`cut off: ${text.slice(-200)}`);
  counts.streams += 1;
  await sleep(streamPauseMs);
}

async function submit(): Promise<void> {
  const sentMs = performance.now();
  const answer = await send("POST", "/images/generations", {
    model: "image-1",
    prompt: "A lighthouse",
  });
  const job = (await answer.json()) as { id: string };
  waits.submission.push(performance.now() - sentMs);
  if (answer.status !== 202) throw new Error(`${answer.status} ${JSON.stringify(job)}`);
  counts.submissions += 1;
  accepted.set(job.id, "");
  await sleep(submissionPauseMs);
}

/** Looks at each accepted job until its state is final. */
async function settleJobs(): Promise<void> {
  const started = Date.now();
  for (const id of accepted.keys()) {
    let state = "";
    while (state !== "completed" && state !== "failed") {
      if (Date.now() - started > jobsTimeoutMs) break;
      const answer = await send("GET", `/images/generations/${id}`);
      const job = (await answer.json()) as { status: string };
      if (answer.status !== 200) throw new Error(`job ${id}: ${answer.status}`);
      state = job.status;
      if (state !== "completed" && state !== "failed") await sleep(500);
    }
    if (state === "completed") counts.completed += 1;
    else if (state === "failed") counts.failed += 1;
    else counts.lost += 1;
  }
}

/** The median and the 95th percentile, in whole milliseconds. */
function spread(values: number[]): { p50: number; p95: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * sorted.length)] ?? 0);
  return { p50: at(0.5), p95: at(0.95) };
}

const startedMs = Date.now();
await Promise.all([
  ...Array.from({ length: Number(values.streams) }, () => keepOn("stream", stream)),
  ...Array.from({ length: Number(values.submitters) }, () => keepOn("submission", submit)),
]);
const seconds = Math.round((Date.now() - startedMs) / 1_000);
await settleJobs();
const billing = (await (await send("GET", "/billing")).json()) as {
  reservedUsdMicros: number;
  credits: { reserved: number };
};
const waitMs = { stream: spread(waits.stream), submission: spread(waits.submission) };
const held = billing.reservedUsdMicros + billing.credits.reserved;
process.stdout.write(
  `${JSON.stringify({ seconds, ...counts, waitMs, failedRequests: failures.length, held, failures: failures.slice(0, 20) })}\n`,
);
process.exitCode = failures.length + counts.failed + counts.lost + held > 0 ? 1 : 0;
