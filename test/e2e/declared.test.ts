import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { parse } from "yaml";
import { type DeclaredService, startDeclaredService } from "../support/upstreams/declared.ts";
import { tokenIssuer } from "../support/upstreams/declared-common.ts";
import type { DeclaredName } from "../support/upstreams/declared-facts.ts";
import { type Area, creditsOf, type Document, download, submit } from "./media-world.ts";
import { type HostProcess, startProcess } from "./process.ts";
import { takeEvents } from "./sse.ts";
import { ownWorldOnly } from "./world.ts";

ownWorldOnly();

/** An upstream of a shipped catalog, at a double of its own, with its first model. */
interface Example {
  /** The catalog's name and the upstream's. Both the upstream and the model have this name in the tests' catalog. */
  id: string;
  service: DeclaredService;
  upstream: Document;
  model: Document;
}

/** The key of all doubles. */
const key = "key-of-all";
/** Milliseconds by which the process's clock, and that of the doubles, is ahead. */
let clockAheadMs = 0;
const root = new URL("../../deploy/catalogs/", import.meta.url);

/** The upstreams of a shipped catalog whose HTTP it declares. */
async function examplesOf(file: string): Promise<Example[]> {
  const { upstreams, models } = parse(await readFile(new URL(file, root), "utf8"));
  const declared = Object.entries<Document>(upstreams).filter(
    ([, { protocol }]) => protocol === "jobs",
  );
  return Promise.all(
    declared.map(async ([name, upstream]) => {
      const id = `${file.replace(".yaml", "")}-${name}`;
      const now = () => Date.now() + clockAheadMs;
      const service = await startDeclaredService(name as DeclaredName, { key, now });
      Object.assign(upstream, { baseUrl: service.baseUrl });
      if (service.cluster) upstream.jobs.origins = [service.cluster.origin];
      if (upstream.jobs.poll) upstream.jobs.poll.everyMs = 500;
      // A catalog may keep a model for those who still have it at the service.
      const model = models.find((one: Document) => one.upstream === name);
      return { id, service, upstream, model: { ...model, id, upstream: id, active: true } };
    }),
  );
}

const files = (await readdir(root)).filter((name) => name.endsWith(".yaml"));
const examples = (await Promise.all(files.map(examplesOf))).flat();
const withTasks = examples.filter(({ upstream }) => upstream.jobs.poll);
const keys = Object.fromEntries(examples.map(({ upstream }) => [upstream.apiKeyEnv, key]));
const folder = await mkdtemp(join(tmpdir(), "genmesh-declared-"));
const catalogFile = join(folder, "catalog.yaml");
await writeFile(
  catalogFile,
  JSON.stringify({
    upstreams: Object.fromEntries(examples.map(({ id, upstream }) => [id, upstream])),
    models: examples.map(({ model: { default: _, ...model } }) => model),
  }),
);
const running: HostProcess[] = [];
afterAll(async () => {
  for (const one of running) await one.kill();
  for (const { service } of examples) await service[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** Enough for a job of each model in each test. */
const credits = 100_000;

/** The process of `npm start`, with the catalog. */
async function start(): Promise<HostProcess> {
  const env = {
    ...{ ...keys, KLING_ACCESS_KEY: tokenIssuer },
    // The doubles and their files are on this machine.
    ...{ GENMESH_ALLOW_PRIVATE_REFERENCES: "1", GENMESH_BOOTSTRAP_CREDITS: String(credits) },
  };
  const dataDir = join(folder, "data");
  const one = await startProcess({ dataDir, catalogFile, aheadMs: clockAheadMs, env });
  running.push(one);
  return one;
}

/** Submits a job for an example's model. */
function begin({ caller }: HostProcess, { id, model }: Example): Promise<Document> {
  const prompt = "a red boat";
  if (model.kind === "image") return submit(caller, "images", { model: id, prompt });
  if (model.kind === "music") {
    return submit(caller, "music", { model: id, mode: "instrumental", title: prompt });
  }
  const row = model.videoOptions.find((one: Document) => one.active !== false);
  const { durationSeconds: seconds, resolution } = row;
  return submit(caller, "videos", { model: id, prompt, seconds, resolution });
}

/** The events of a job, from its present state to its end. */
async function eventsOf({ caller }: HostProcess, { id }: Document): Promise<Document[]> {
  const { text } = await caller.get(`/jobs/${id}/events`, { accept: "text/event-stream" });
  return takeEvents(text).events.flatMap(({ json }) => json ?? []);
}

const areas: Readonly<Record<string, [Area, string]>> = {
  image: ["images", "images"],
  video: ["videos", "videos"],
  music: ["music", "clips"],
};

/** The bytes of a job's only file. */
async function fileOf({ caller }: HostProcess, { model }: Example, job: Document) {
  const [area, outputs] = areas[model.kind] ?? [];
  const { json } = await caller.get(`/${area}/generations/${job.id}`);
  return (await download(caller, json[outputs ?? ""][0].url)).bytes;
}

/** The end of an example's job, and how many more tasks its service charges. */
interface Ended {
  status: string;
  error: string | undefined;
  /** Is the caller charged the price? */
  isCharged: boolean;
  /** Tasks that were begun, and those that the service charges. */
  begun: number;
  paid: number;
}

const completed: Ended = {
  ...{ status: "completed", error: undefined },
  ...{ isCharged: true, begun: 1, paid: 1 },
};

/** Does the same with every example at once. Gives the ends, and the credits that were charged in all. */
async function each(
  among: readonly Example[],
  one: (example: Example) => Promise<Document[]>,
): Promise<Record<string, Ended>> {
  const ends = await Promise.all(
    among.map(async (example) => {
      const { tasks, paid } = example.service;
      const [begunBefore, paidBefore] = [tasks.length, paid().length];
      const { status, error, creditsCharged, creditsReserved } = (await one(example)).at(-1);
      const isCharged = creditsCharged > 0 && creditsCharged === creditsReserved;
      if (!isCharged) expect(creditsCharged).toBe(0);
      const counts = { begun: tasks.length - begunBefore, paid: paid().length - paidBefore };
      return [example.id, { status, error: error?.code, isCharged, ...counts }] as const;
    }),
  );
  return Object.fromEntries(ends);
}

/** The same end for each. */
function all(among: readonly Example[], end: (example: Example) => Ended): Record<string, Ended> {
  return Object.fromEntries(among.map((example) => [example.id, end(example)]));
}

let spent = 0;
/** Nothing is held, and the account has paid for completed jobs alone. */
async function settled({ caller }: HostProcess): Promise<void> {
  const { available, reserved } = await creditsOf(caller);
  expect([available, reserved]).toEqual([credits - spent, 0]);
}

/** The present process. */
let host = await start();

test("each is followed to its end over events, and charged once", async () => {
  const ends = await each(examples, async (example) => {
    const job = await begin(host, example);
    const events = await eventsOf(host, job);
    spent += job.creditsReserved;
    const { service, upstream } = example;
    expect(await fileOf(host, example, job), example.id).toEqual(Buffer.from(service.file));
    const statuses = events.map(({ status }) => status);
    if (withTasks.includes(example)) expect(statuses, example.id).toContain("running");
    // Nothing says who made it.
    const told = JSON.stringify(events).replaceAll(example.id, "");
    expect(told).not.toContain(new URL(service.server.origin).host);
    for (const { model } of service.tasks.map(({ input }) => input)) {
      if (typeof model === "string") expect(told, upstream.baseUrl).not.toContain(model);
    }
    return events;
  });
  expect(ends).toEqual(all(examples, () => completed));
  await settled(host);
});

test("each that refuses the content costs nothing", async () => {
  for (const { service } of examples) service.plan({ end: "refused" });
  const ends = await each(examples, async (example) => eventsOf(host, await begin(host, example)));
  const refused = { status: "failed", error: "content_policy_violation", isCharged: false };
  expect(ends).toEqual(all(examples, () => ({ ...refused, begun: 1, paid: 0 })));
  await settled(host);
});

/** Longer than the lease of a dead worker and than the wait for its answer, in milliseconds. */
const leaseOverMs = 180_000;

test("each goes on with its task after its process is killed", async () => {
  const answer = Promise.withResolvers<void>();
  const jobs = new Map<Example, Document>();
  await Promise.all(
    examples.map(async (example) => {
      const { service } = example;
      service.plan({ pace: "held" });
      // Without a task, the answer takes as long as the music.
      const route = withTasks.includes(example) ? "look" : "create";
      if (route === "create") service.server.next(route, { kind: "held", until: answer.promise });
      const asked = route === "look" ? (service.cluster ?? service.server) : service.server;
      const next = asked.seen(route).length + 1;
      jobs.set(example, await begin(host, example));
      await asked.request(route, next);
    }),
  );
  const begun = examples.map(({ service }) => service.tasks.length);
  await host.kill();
  answer.resolve();
  for (const { service } of examples) service.finish();
  clockAheadMs = leaseOverMs;
  host = await start();
  const ends = await each(examples, async (example) => {
    const job = jobs.get(example);
    if (withTasks.includes(example)) spent += job.creditsReserved;
    return eventsOf(host, job);
  });
  expect(examples.map(({ service }) => service.tasks.length)).toEqual(begun);
  // Without a task to look at, the answer was lost with its process. It is not asked for again.
  const lost = { status: "failed", error: "generation_failed", isCharged: false };
  const end = (example: Example) => (withTasks.includes(example) ? completed : lost);
  expect(ends).toEqual(all(examples, (example) => ({ ...end(example), begun: 0, paid: 0 })));
  await settled(host);
});

test("each whose link has ended is asked for a fresh one, and fails where there is none", async () => {
  for (const { service } of examples) service.plan({ deadLinks: 1 });
  const isFresh = (example: Example) =>
    withTasks.includes(example) && example.service.facts.hasFreshLinks === true;
  const ends = await each(examples, async (example) => {
    const job = await begin(host, example);
    if (isFresh(example)) spent += job.creditsReserved;
    return eventsOf(host, job);
  });
  // It is made and paid for there, and counts as lost.
  const failed = { status: "failed", error: "generation_failed", isCharged: false };
  const end = (example: Example) => (isFresh(example) ? completed : failed);
  expect(ends).toEqual(all(examples, (example) => ({ ...end(example), begun: 1, paid: 1 })));
  await settled(host);
});
