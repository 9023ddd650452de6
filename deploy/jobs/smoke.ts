// `helm test`: makes an image and a stream through the gateway, and checks their charges to the micro. It uses an account of its own, so
// that no other caller's requests disturb the figures, and a key that it deletes.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { envToOperatorConfig, readEnv } from "../../services/host/config.ts";
import { operate } from "./operator.ts";
import { runJob } from "./run-job.ts";

/** Milliseconds for a whole job, and between two looks at it. */
const [jobTimeoutMs, pollMs] = [180_000, 500];
/** The grant of each run: more than it can be charged. */
const funds = ["--usd", "1.00", "--credits", "1000"];

const { values } = parseArgs({
  options: {
    "image-model": { type: "string", default: "image-1" },
    "text-model": { type: "string", default: "chat-1" },
    "operation-id": { type: "string", default: "helm-test" },
    server: { type: "string" },
  },
});
const base = envToOperatorConfig(readEnv()).baseUrl ?? "";

await runJob(async () => {
  const account = await operate(
    ["account", "create", "--name", "helm test", "--operation-id", values["operation-id"]],
    values.server,
  );
  const accountId = String(account.accountId);
  await operate(["account", "top-up", accountId, ...funds], values.server);
  const key = await operate(["key", "create", accountId], values.server);
  try {
    return `${await picture(String(key.apiKey))}; ${await stream(String(key.apiKey))}`;
  } finally {
    await operate(["key", "revoke", String(key.keyId)], values.server);
  }
});

/** An image job: completed, its file available, its price charged and nothing else. */
async function picture(key: string): Promise<string> {
  const before = await billing(key);
  let job = await api<Job>(key, "POST", "/images/generations", {
    model: values["image-model"],
    prompt: "A lighthouse at dusk",
  });
  const started = Date.now();
  while (!job.terminal) {
    if (Date.now() - started > jobTimeoutMs)
      throw new Error(`job ${job.id} is still ${job.status}`);
    await sleep(pollMs);
    job = await api<Job>(key, "GET", `/images/generations/${job.id}`);
  }
  if (job.status !== "completed") throw new Error(`job ${job.id} failed: ${job.error?.code}`);
  const file = job.images?.[0];
  const bytes = await (
    await send(key, "GET", `/images/generations/${job.id}/files/${file?.id}`)
  ).bytes();
  same("bytes of the picture", bytes.length, file?.sizeBytes);
  const after = await billing(key);
  same("credits charged", before.credits.available - after.credits.available, job.creditsCharged);
  same("credits held", after.credits.reserved, 0);
  return `a picture for ${job.creditsCharged} credits`;
}

/** A streamed answer: complete, and its cost equal to the growth of the month's charges. */
async function stream(key: string): Promise<string> {
  const before = await billing(key);
  const answer = await send(key, "POST", "/responses", {
    model: values["text-model"],
    input: "Say hello.",
    stream: true,
  });
  const text = await answer.text();
  if (!text.includes("event: response.completed") || !text.trimEnd().endsWith("data: [DONE]")) {
    throw new Error("the stream did not end with response.completed and [DONE]");
  }
  const after = await billing(key);
  const charged = before.availableUsdMicros - after.availableUsdMicros;
  same("USD micros spent", after.monthSpendUsdMicros - before.monthSpendUsdMicros, charged);
  same("USD micros held", after.reservedUsdMicros, 0);
  return `a stream for ${charged} USD micros`;
}

interface Job {
  id: string;
  status: string;
  terminal: boolean;
  creditsCharged?: number;
  images?: { id: string; sizeBytes: number }[];
  error?: { code: string };
}

interface Balance {
  availableUsdMicros: number;
  reservedUsdMicros: number;
  monthSpendUsdMicros: number;
  credits: { available: number; reserved: number };
}

function billing(key: string): Promise<Balance> {
  return api<Balance>(key, "GET", "/billing");
}

async function api<T>(key: string, method: string, path: string, body?: unknown): Promise<T> {
  return (await (await send(key, method, path, body)).json()) as T;
}

async function send(key: string, method: string, path: string, body?: unknown): Promise<Response> {
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(jobTimeoutMs),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

function same(what: string, got: number, wanted: number | undefined): void {
  if (got !== wanted) throw new Error(`${what}: ${got}, not ${wanted}`);
}
