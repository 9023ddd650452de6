import { setTimeout as delay } from "node:timers/promises";
import { type Answer, ask, imageOf, type Question, textOf } from "./ask.ts";
import { type Balancer, startBalancer } from "./balancer.ts";
import type { MeshCaller, MeshWorld } from "./world.ts";

/** The actions of callers. */
export type Action = "text" | "stream" | "submit" | "poll" | "download";

/** One request of the load. */
export interface Outcome {
  action: Action;
  /** The time of its end, in ms since the load began. */
  atMs: number;
  tookMs: number;
  /** Undefined for a success. Otherwise the kind of failure: a status, or the way in which the connection broke. */
  failure: string | undefined;
  /** The text of a failure. */
  detail: string;
}

/** An accepted submission. */
export interface Accepted {
  jobId: string;
  idempotencyKey: string;
}

/** Callers that send requests almost without a pause. */
export interface Load {
  readonly caller: MeshCaller;
  readonly outcomes: readonly Outcome[];
  readonly accepted: readonly Accepted[];
  /** The number of submissions, each with a key of its own. */
  submissions(): number;
  /** Milliseconds since the load began. */
  nowMs(): number;
  /** Ends new requests. Resolves when the last one is answered. */
  stop(): Promise<void>;
}

/** Milliseconds between two requests of a caller. All callers together make some ten a second. */
const pauseMs = 150;
/** Milliseconds after which a caller gives a request up. It is longer than any pause of a store or process here. */
const patienceMs = 25_000;
/** Deltas of a streamed answer and the milliseconds between them: a second and a half. */
const [deltaCount, deltaDelayMs] = [10, 150];
/** The number of repeats of a submission, with its key, while its answer is unknown. */
const maxTries = 200;

/** Starts the load: text, streams of 1.5 s, submissions with an idempotency key that are repeated until accepted, polls, downloads. */
export async function startLoad(world: MeshWorld): Promise<Load> {
  const caller = await world.caller({ usdMicros: 1_000_000_000n, credits: 1_000_000n });
  world.text.script(({ body }) => ({
    kind: "ok",
    firstByteDelayMs: 50,
    ...(body?.stream ? { deltas: Array(deltaCount).fill("word "), deltaDelayMs } : {}),
  }));
  const balancer = startBalancer(world.gateways);
  const beganAtMs = performance.now();
  const outcomes: Outcome[] = [];
  const accepted: Accepted[] = [];
  const files: string[] = [];
  let submissions = 0;
  let isOver = false;
  const made = (action: Action, question: Omit<Question, "caller">) =>
    request({ balancer, caller, action, question, beganAtMs, outcomes });
  const repeat = async (act: (n: number) => Promise<unknown>) => {
    for (let n = 0; !isOver; n++) {
      await act(n);
      await delay(pauseMs);
    }
  };
  const submit = async (n: number) => {
    const idempotencyKey = `load-${n}`;
    submissions++;
    for (let tries = 0; tries < maxTries; tries++) {
      const answer = await made("submit", { ...imageOf(`load ${n}`), idempotencyKey });
      if (answer) return void accepted.push({ jobId: answer.json.id, idempotencyKey });
      await delay(pauseMs);
    }
  };
  const poll = async () => {
    const { jobId } = accepted[Math.floor(Math.random() * accepted.length)] ?? {};
    if (jobId === undefined) return;
    const answer = await made("poll", { path: `/images/generations/${jobId}` });
    for (const { url } of answer?.json.images ?? []) files.push(new URL(url).pathname.slice(3));
  };
  const download = async () => {
    const path = files[Math.floor(Math.random() * files.length)];
    if (path !== undefined) await made("download", { path });
  };
  const running = [
    repeat(() => made("text", textOf("hello"))),
    repeat(() => made("stream", textOf("hello", { stream: true }))),
    repeat(() => made("stream", textOf("hello", { stream: true }))),
    repeat(submit),
    repeat(poll),
    repeat(download),
  ];
  return {
    caller,
    outcomes,
    accepted,
    submissions: () => submissions,
    nowMs: () => performance.now() - beganAtMs,
    async stop() {
      isOver = true;
      await Promise.all(running);
      await balancer[Symbol.asyncDispose]();
    },
  };
}

/** Makes one request and records its outcome. Undefined where it failed. */
async function request(deps: {
  balancer: Balancer;
  caller: MeshCaller;
  action: Action;
  question: Omit<Question, "caller">;
  beganAtMs: number;
  outcomes: Outcome[];
}): Promise<Answer | undefined> {
  const { balancer, caller, action, question, beganAtMs, outcomes } = deps;
  const startedAtMs = performance.now();
  const signal = AbortSignal.timeout(patienceMs);
  let answer: Answer | undefined;
  let failure: string | undefined;
  let detail = "";
  try {
    answer = await balancer.through((gateway) => ask(gateway, { ...question, caller, signal }));
    failure = failureOf(action, answer);
    if (failure) detail = answer.text.slice(-300);
  } catch (error) {
    failure = brokenOf(error);
    detail = String((error as { cause?: unknown }).cause ?? error);
  }
  const nowMs = performance.now();
  const [atMs, tookMs] = [nowMs - beganAtMs, nowMs - startedAtMs];
  outcomes.push({ action, atMs, tookMs, failure, detail });
  return failure === undefined ? answer : undefined;
}

function failureOf(action: Action, { status, headers, text }: Answer): string | undefined {
  if (status >= 500 && status !== 502) {
    return headers.has("retry-after") ? `${status}` : `${status} without Retry-After`;
  }
  if (status >= 400) return `${status}`;
  if (action !== "stream") return undefined;
  if (text.includes("event: response.completed") && text.endsWith("data: [DONE]\n\n")) {
    return undefined;
  }
  return text.includes("event: response.failed") ? "response.failed" : "cut";
}

/** The way in which a connection ended. */
function brokenOf(error: unknown): string {
  if ((error as Error).name === "TimeoutError") return "no answer";
  const { cause, message } = error as Error & { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message;
}
