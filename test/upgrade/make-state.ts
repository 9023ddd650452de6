// Makes the data for `upgrade.test.ts`: those of an older version, with every kind of record.
//
// git worktree add --detach OLD <commit> && (cd OLD && npm ci)
// node test/upgrade/make-state.ts OLD sqlite
// GENMESH_TEST_MONGODB_URL=mongodb://… node test/upgrade/make-state.ts OLD mongodb
//
// The process is killed in the middle of a stream, with one job at its upstream and another waiting.

import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { BSON, MongoClient } from "mongodb";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Caller, createCaller } from "../e2e/caller.ts";
import { ended, pathOf, submit, upload } from "../e2e/media-world.ts";
import { strangeUsages } from "../support/scripted-behaviours.ts";
import { until } from "../support/until.ts";
import { type GenmeshProcess, startGenmesh } from "./process.ts";
import { adminToken, demoKey, type Expected, startUpstreams } from "./scenario.ts";

const [checkout = "", store = "sqlite"] = process.argv.slice(2);
const stateFolder = fileURLToPath(new URL("state", import.meta.url));
const dataDir = await mkdtemp(join(tmpdir(), "genmesh-state-"));
const catalogFile = join(dataDir, "catalog.json");
const hello = { role: "user", content: "hello" };
const speech = { model: "speech", voice: "alloy", input: "Good morning." };
const hang = { how: "hang", after: 200 } as const;
/** Longer than the time between two checkpoints of a stream. */
const checkpointMs = 4_500;
const databaseUrl = store === "mongodb" ? ownDatabase() : undefined;

await using upstreams = await startUpstreams();
await upstreams.writeCatalog(catalogFile);
await using genmesh = await startGenmesh({
  ...{ checkout: resolve(checkout), dataDir, catalogFile, adminToken, databaseUrl },
  ...{ apiKey: demoKey, aheadMs: 0 },
});
const expected = await fill(genmesh);
await genmesh.kill();
await keep();
await rm(dataDir, { recursive: true });

async function fill({ baseUrl, auth, billing }: GenmeshProcess): Promise<Expected> {
  const { text, media } = upstreams;
  const holding = (key: string, who = { accountId: "", keyId: "" }) =>
    createCaller({ baseUrl, key, ...who }, () => {});
  const owners = await auth.listAccounts({});
  const demoAccount = owners.accounts[0]?.accountId ?? "";
  const demoKeys = await auth.listKeys({ accountId: demoAccount });
  const demo = holding(demoKey, {
    accountId: demoAccount,
    keyId: demoKeys.keys[0]?.keyId ?? "",
  });

  // A second account with keys of every sort. One operation granted it money twice.
  const second = await auth.createAccount({ name: "second", operationId: "second" });
  const accountId = second.account?.accountId ?? "";
  for (const _ of [1, 2]) {
    const amount = 750_000n;
    await billing.grant({ accountId, unit: Unit.USD_MICROS, amount, operationId: "top-up" });
  }
  const made = async (wanted: object) => {
    const { key, secret } = await auth.createKey({ accountId, ...wanted });
    return holding(secret, { accountId, keyId: key?.keyId ?? "" });
  };
  const first = holding(second.secret, { accountId, keyId: second.key?.keyId ?? "" });
  const limited = await made({ monthlyUsdMicrosLimit: 100_000n, requestsPerMinute: 100 });
  const scoped = await made({ scopes: [Scope.MODELS, Scope.BILLING], allowedModels: ["chat"] });
  const revoked = await made({});
  await auth.revokeKey({ keyId: revoked.keyId });
  const rotated = await made({});
  const newer = await auth.rotateKey({ keyId: rotated.keyId, graceSeconds: 86_400 });
  const callers = [demo, first, limited, scoped, revoked, rotated];
  callers.push(holding(newer.secret, { accountId, keyId: rotated.keyId }));

  // Text: whole, streamed, chat, compact, a free one that failed, and one with an unbelievable usage.
  const ask = async (caller: Caller, path: string, body: object, key: string) => {
    const { status, json } = await caller.post(path, body, { idempotencyKey: key });
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(json)}`);
    return { path, body, key, answer: withoutAddress(json, baseUrl) };
  };
  const answers = [
    await ask(demo, "/responses", { model: "chat", input: "whole" }, "text-1"),
    await ask(demo, "/chat/completions", { model: "chat", messages: [hello] }, "text-2"),
    await ask(demo, "/responses/compact", { model: "chat", input: "long" }, "text-3"),
    await ask(demo, "/speech/generations", speech, "speech-1"),
  ];
  await demo.stream("/responses", { model: "chat", input: "told" }, { idempotencyKey: "text-4" });
  const told = { model: "chat", input: "told" };
  answers.push(await ask(demo, "/responses", told, "text-4"));
  await limited.post("/responses", { model: "chat", input: "of a limited key" });
  text.next({ kind: "status", status: 500 });
  await demo.post("/responses", { model: "chat", input: "that fails" });
  text.next({ kind: "ok", usage: strangeUsages.absurd });
  await first.post("/responses", { model: "chat", input: "absurd" });

  // Files and jobs.
  const png = media.wording.outputs.images[0] ?? new Uint8Array();
  const { json: file } = await upload(demo, png, { idempotencyKey: "file-1" });
  const image = { model: "image", prompt: "a fox", input_reference: { file_id: file.id } };
  const done = await ended(
    demo,
    await submit(demo, "images", image, { idempotencyKey: "image-1" }),
  );
  media.next("POST /images/edits", {
    kind: "status",
    status: 400,
    code: "content_policy_violation",
  });
  const failed = await ended(demo, await submit(demo, "images", image));
  media.wording.runningLooks = Number.MAX_SAFE_INTEGER;
  const film = { model: "video", prompt: "waves" };
  const running = await submit(demo, "videos", film, { idempotencyKey: "video-1" });
  await until("a running film", async () => {
    const { json } = await demo.get(pathOf(demo, running.statusUrl));
    return json.status === "running" && media.seen("GET /videos/*").length > 1;
  });
  const queued = await submit(demo, "videos", film);

  // A stream that is cut by the kill, after its first checkpoint.
  text.next({ kind: "ok", deltas: Array(200).fill("twenty characters. "), break: hang });
  const open = await demo.open("/responses", { model: "chat", input: "cut off" });
  await open.until(({ data }) => String(data).includes("twenty"));
  await new Promise((resolve) => setTimeout(resolve, checkpointMs));

  const jobs: Expected["jobs"] = {};
  for (const job of [done, failed]) {
    const path = pathOf(demo, job.statusUrl);
    jobs[path] = withoutAddress((await demo.get(path)).json, baseUrl);
  }
  answers.push({
    path: "/images/generations",
    body: image,
    key: "image-1",
    answer: withoutAddress(done, baseUrl),
  });
  const clip = answers[3]?.answer as { audio: { url: string } };
  const paths = [done.images[0].url, clip.audio.url].map((url) => url.replace(/^.*\/v1|^BASE/, ""));
  const files = await Promise.all(
    [...paths, `/files/${file.id}/content`].map(async (path) => ({
      path,
      sha256: await sha256At(demo, path),
    })),
  );
  const { holds } = await billing.listHolds({ accountId });
  const inReview = holds[0];
  const keys: Expected["keys"] = [];
  const balances: Expected["billing"] = {};
  for (const one of callers) {
    const { status, json } = await one.get("/billing");
    keys.push({ secret: one.key, status, accountId: one.accountId, keyId: one.keyId });
    if (status === 200) balances[one.key] = json;
  }
  const accounts: Expected["accounts"] = [];
  for (const owner of [demoAccount, accountId]) {
    const { entries } = await billing.listEntries({ accountId: owner, pageSize: 1_000 });
    accounts.push({ accountId: owner, entries: entries.length });
  }
  return {
    madeAt: Date.now(),
    ...{ keys, billing: balances, answers, jobs, files, accounts },
    unfinished: [running, queued].map(({ statusUrl }) => pathOf(demo, statusUrl)),
    review: { holdId: inReview?.holdId ?? "", amountMicros: String(inReview?.amount) },
  };
}

function withoutAddress(answer: unknown, baseUrl: string): unknown {
  return JSON.parse(JSON.stringify(answer).replaceAll(baseUrl, "BASE"));
}

async function sha256At(caller: Caller, path: string): Promise<string> {
  const headers = { authorization: `Bearer ${caller.key}` };
  const response = await fetch(`${caller.baseUrl}${path}`, { headers });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return createHash("sha256")
    .update(Buffer.from(await response.arrayBuffer()))
    .digest("hex");
}

function ownDatabase(): string {
  const url = new URL(process.env.GENMESH_TEST_MONGODB_URL ?? "");
  url.pathname = `/genmesh-state-${randomBytes(4).toString("hex")}`;
  return url.href;
}

async function keep(): Promise<void> {
  await rm(catalogFile);
  const at = (name: string) => join(stateFolder, `${store}.${name}`);
  await writeFile(at("json"), `${JSON.stringify(expected, undefined, 2)}\n`);
  // Without owner and time, so that the same files make the same archive.
  const plain = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
  execFileSync("tar", [...plain, "-czf", at("tar.gz"), "-C", dataDir, "."]);
  if (!databaseUrl) return;
  await using client = new MongoClient(databaseUrl);
  const lines: string[] = [];
  for (const { name } of await client.db().listCollections().toArray()) {
    for await (const document of client.db().collection(name).find({}, { promoteValues: false })) {
      lines.push(BSON.EJSON.stringify({ collection: name, document }, { relaxed: false }));
    }
  }
  await writeFile(at("jsonl.gz"), gzipSync(`${lines.join("\n")}\n`));
  await client.db().dropDatabase();
}
