import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { repeatedShare } from "../../gateway/limits.ts";
import { promptly } from "../support/promptly.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { until } from "../support/until.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

/** 16 MB as numbers, for 256 letters: a quarter of a thousandth of a dollar. */
const [inputs, dimensions] = [256, 3_072];
const numbers = JSON.stringify(Array.from({ length: dimensions }, (_, at) => Math.sin(at + 1)));
const embeddings = (of: number) =>
  `{"object":"list","data":[${Array.from(
    { length: of },
    (_, index) => `{"object":"embedding","index":${index},"embedding":${numbers}}`,
  ).join()}],"usage":{"prompt_tokens":${of},"total_tokens":${of}}}`;
const large = Buffer.from(embeddings(inputs));
const small = Buffer.from(embeddings(1));
/** 8 MB, which are kept for an idempotency key and are too large for the buffers of a connection. */
const keptInputs = 120;
const kept = Buffer.from(embeddings(keptInputs));
/** Two of the largest answers of each account are in memory at once. */
const fit = Math.floor((128 * 1024 * 1024) / large.length);
/** MiB of memory that a process may have. In an older release forty answers of that size took 2 to 3 GiB. */
const mostMib = 1_024;
const body = JSON.stringify({ model: "vectors", input: Array(inputs).fill("a") });

let upstream: ScriptedUpstream;
let watched: WatchedProcess;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  upstream.script({
    kind: "custom",
    handle({ body: asked }, answer) {
      const bytes = { [inputs]: large, [keptInputs]: kept }[asked.input.length as number] ?? small;
      // Some answers have a length, others do not.
      const length = asked.user === "chunked" ? {} : { "content-length": bytes.length };
      answer.writeHead(200, { "content-type": "application/json", ...length });
      answer.end(bytes);
    },
  });
  watched = await startWatched({
    developerPrompt: "",
    upstreams: { main: { protocol: "openai", baseUrl: upstream.baseUrl } },
    models: [
      {
        ...{ id: "vectors", kind: "embedding", upstream: "main", maxInputTokens: 1_000 },
        maxInputs: inputs,
        pricing: { inputUsdMicrosPerMillionTokens: 1_000_000 },
      },
    ],
  });
});

afterAll(async () => {
  await watched?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});

/** A request whose caller reads the beginning of its answer, and later the rest. */
interface SlowReader {
  socket: Socket;
  /** 0 before there is an answer. */
  status: number;
  bytes: number;
  isOver: boolean;
  isWhole(): boolean;
}

function readSlowly(key: string, sent = body, headers = ""): SlowReader {
  const { hostname, port } = new URL(watched.baseUrl);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  let wholeBytes = Number.POSITIVE_INFINITY;
  const isWhole = () => reader.bytes === wholeBytes;
  const reader: SlowReader = { socket, status: 0, bytes: 0, isOver: false, isWhole };
  socket.on("error", () => undefined);
  socket.on("close", () => {
    reader.isOver = true;
  });
  socket.on("data", (chunk: Buffer) => {
    reader.bytes += chunk.length;
    if (reader.status !== 0) return;
    socket.pause();
    const head = chunk.subarray(0, chunk.indexOf("\r\n\r\n")).toString("latin1");
    reader.status = Number(/^HTTP\/1.1 (\d+)/.exec(head)?.[1]);
    wholeBytes = head.length + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1]);
  });
  socket.write(
    `POST /v1/embeddings HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\n${headers}` +
      `content-type: application/json\r\ncontent-length: ${sent.length}\r\n\r\n${sent}`,
  );
  return reader;
}

async function ask(key: string, sent: string) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(`${watched.baseUrl}/embeddings`, {
    method: "POST",
    body: sent,
    headers,
  });
  return { status: answer.status, text: await answer.text() };
}

async function charged(key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  return until("the settlement", async () => {
    const answer = await fetch(`${watched.baseUrl}/billing`, { headers });
    const { reservedUsdMicros, monthSpendUsdMicros } = (await answer.json()) as never;
    return reservedUsdMicros === 0 ? monthSpendUsdMicros : undefined;
  });
}

/** Watches the process from now on, for the most memory that it has had, in MiB. */
function watchMemory() {
  const state = { mostMib: 0, isOver: false };
  const look = async () => {
    while (!state.isOver) {
      const status = await readFile(`/proc/${watched.pid}/status`, "utf8");
      state.mostMib = Math.max(state.mostMib, Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
      await delay(50);
    }
  };
  onTestFinished(() => {
    state.isOver = true;
  });
  void look();
  return state;
}

test("large answers of one account fill a bounded part of the memory, with slow and fast callers, and each is given and charged once", {
  timeout: 300_000,
}, async () => {
  const many = 40;
  const [hostile, other] = [await watched.account(), await watched.account()];
  const memory = watchMemory();
  const readers = Array.from({ length: many }, () => readSlowly(hostile.key));
  const begun = () => readers.filter(({ status }) => status !== 0).length;
  await until("the first answers", () => begun() >= fit, { withinMs: 120_000 });
  const small = JSON.stringify({ model: "vectors", input: "Hi" });
  const one = await promptly(10_000, () => ask(other.key, small));
  expect(one.status).toBe(200);
  // The others wait at their upstream until these are read.
  expect(begun()).toBe(fit);
  const take = () => {
    for (const { status, socket } of readers) if (status !== 0) socket.resume();
    return readers.every((reader) => reader.isWhole() || reader.isOver);
  };
  await until("all answers", take, { withinMs: 240_000 });
  expect(readers.map(({ status }) => status)).toEqual(Array(many).fill(200));
  expect(readers.filter((reader) => !reader.isWhole())).toEqual([]);
  expect(await charged(hostile.key)).toBe(many * inputs);
  expect(memory.mostMib).toBeLessThan(mostMib);
});

test("an answer that does not say its length is bounded as others, and whole", {
  timeout: 240_000,
}, async () => {
  const { key } = await watched.account();
  const chunked = JSON.stringify({ ...JSON.parse(body), user: "chunked" });
  const answers = await Promise.all(Array.from({ length: 6 }, () => ask(key, chunked)));
  for (const { status, text } of answers) {
    expect(status).toBe(200);
    expect(JSON.parse(text).data).toHaveLength(inputs);
  }
});

test("repeats of a large answer go to so many slow readers at once as their account has room for", {
  timeout: 240_000,
}, async () => {
  const { key } = await watched.account();
  const sent = JSON.stringify({ model: "vectors", input: Array(keptInputs).fill("a") });
  const header = "idempotency-key: one\r\n";
  const first = readSlowly(key, sent, header);
  first.socket.on("data", () => first.socket.resume());
  await until("the first answer", first.isWhole);
  const { each } = repeatedShare;
  const places = Math.floor(each.places / first.bytes);
  const many = places + each.waiting + 6;
  const readers = Array.from({ length: many }, () => readSlowly(key, sent, header));
  const count = (status: number) => readers.filter((reader) => reader.status === status).length;
  await until("all but those that wait", () => count(0) <= each.waiting);
  expect([count(200), count(429)]).toEqual([places, 6]);
  const take = () => {
    for (const { status, socket } of readers) if (status !== 0) socket.resume();
    const answered = readers.filter(({ status }) => status === 200);
    return answered.length === places + each.waiting && answered.every(({ isWhole }) => isWhole());
  };
  await until("all of them", take);
  expect(await charged(key)).toBe(keptInputs);
});

test("what callers do not take gives way to the large answer of another account", {
  timeout: 240_000,
}, async () => {
  const hostile = [await watched.account(), await watched.account()];
  const other = await watched.account();
  const readers = hostile.flatMap(({ key }) => Array.from({ length: fit }, () => readSlowly(key)));
  const isFull = () => readers.every(({ status }) => status === 200);
  await until("the room to be full", isFull, { withinMs: 60_000 });
  // There is room for one more.
  const others = Array.from({ length: 3 }, () => readSlowly(other.key));
  const areServed = () => others.every(({ status }) => status === 200);
  await until("the other account's answers", areServed, { withinMs: 60_000 });
  for (const { socket } of [...readers, ...others]) socket.resume();
  const isDone = () => readers.every((reader) => reader.isWhole() || reader.isOver);
  await until("the others", isDone, { withinMs: 60_000 });
  const cut = readers.filter((reader) => !reader.isWhole()).length;
  expect(cut).toBeGreaterThan(0);
  expect(cut).toBeLessThan(readers.length);
  await until("what was not cut off", () => others.every(({ isWhole }) => isWhole()));
});
