import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { Model, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { parseCatalog } from "../../services/catalog/parse.ts";
import type { GenerationRequest } from "../../services/upstreams/media/port.ts";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  musicRequest,
  reference,
  videoRequest,
} from "../../services/upstreams/media/world.fixture.ts";
import type { Behaviour } from "../support/scripted-behaviours.ts";
import {
  type DeclaredOptions,
  type Facts,
  startDeclaredService,
} from "../support/upstreams/declared.ts";
import { tokenIssuer } from "../support/upstreams/declared-common.ts";
import { type DeclaredName, declaredFacts } from "../support/upstreams/declared-facts.ts";
import { reply } from "../support/upstreams/double.ts";

/** The name of each upstream, with the catalog of deploy/catalogs that has it. */
const upstreams = {
  ...{ xai: "xai", ark: "ark", minimax: "minimax", hailuo: "minimax", kling: "kling" },
  ...{ google: "google", veo: "google", bfl: "bfl", wan: "wan", runway: "runway", vidu: "vidu" },
  ...{ "minimax-music": "minimax", pixverse: "pixverse" },
} as const satisfies Record<DeclaredName, string>;
const names = Object.keys(upstreams) as DeclaredName[];
const withTasks = names.filter((name) => name !== "minimax-music");
/** The catalog of PixVerse makes videos of text alone. */
const withReferences = withTasks.filter((name) => name !== "pixverse");

const png = await samplePng();

/** A clock of genmesh and the service. A pause moves it on. */
function quickTime() {
  let ms = Date.UTC(2026, 10, 1);
  return {
    now: () => ms,
    steady: () => ms,
    async sleep(pauseMs: number, signal?: AbortSignal) {
      ms += pauseMs;
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    },
  };
}

/** The shipped catalog's upstream at a double, and its first model. */
function catalogAt(name: DeclaredName, baseUrl: string, origins: string[]): [Upstream, Model] {
  const text = readFileSync(
    new URL(`../../deploy/catalogs/${upstreams[name]}.yaml`, import.meta.url),
    "utf8",
  );
  const catalog = parse(text);
  const entry = catalog.upstreams[name];
  Object.assign(entry, { baseUrl });
  if (origins.length > 0) entry.jobs.origins = origins;
  const { snapshot, faults } = parseCatalog(JSON.stringify(catalog));
  const upstream = snapshot?.upstreams[name];
  const model = snapshot?.models.find((one) => one.upstream === name);
  if (!upstream || !model) throw new Error(JSON.stringify(faults));
  return [upstream, model];
}

function requestOf({ spec }: Model, mode: "t2v" | "i2v"): GenerationRequest {
  if (spec.case === "image") return imageRequest;
  if (spec.case === "music") return musicRequest;
  const row = spec.case === "video" ? spec.value.options.find((one) => one.active) : undefined;
  const { durationSeconds = 6, resolution = "720p" } = row ?? {};
  return { ...videoRequest, mode, durationSeconds, resolution, aspectRatio: "auto" };
}

function factsOf(name: DeclaredName): Facts {
  return declaredFacts[name];
}

function passing(status: number, body: unknown): Behaviour {
  return reply(status, body) as Behaviour;
}

/** A double, the drivers, and a job of the shipped catalog's model. */
async function begin(name: DeclaredName, options: DeclaredOptions = {}) {
  const clock = quickTime();
  const stack = new AsyncDisposableStack();
  const service = stack.use(await startDeclaredService(name, { now: clock.now, ...options }));
  const isIssuer = (variable: string) => variable.endsWith("ACCESS_KEY");
  const secrets = (variable: string) => (isIssuer(variable) ? tokenIssuer : service.key);
  const world = stack.use(await createWorld({ clock, secrets }));
  const origins = service.cluster ? [service.cluster.origin] : [];
  const [upstream, model] = catalogAt(name, service.baseUrl, origins);
  const job = (more: { references?: number; resumeId?: string | undefined } = {}) => {
    const { references = 0, resumeId } = more;
    const mode = references === 0 ? "t2v" : "i2v";
    const call = model.calls.find((one) => one.mode === mode) ?? model.calls[0];
    if (!call) throw new Error("the model has no call");
    return world.task({
      ...{ upstream, request: requestOf(model, mode), call, resumeId },
      references: Array.from({ length: references }, () => reference(png)),
    });
  };
  const generate = (made: ReturnType<typeof job>) => world.upstreams.generate(made.task);
  /** The service that is looked at. */
  const looked = (service.cluster ?? service.server) as typeof service.server;
  /** Begins a task, and leaves it once it has been looked at. Gives its stored id. */
  async function leave(): Promise<string> {
    service.plan({ pace: "held" });
    const begun = job();
    const left = new AbortController();
    const ended = world.upstreams.generate({ ...begun.task, signal: left.signal });
    await looked.request("look", looked.seen("look").length + 1);
    left.abort(new Error("the worker is gone"));
    await expect(ended).rejects.toThrow("the worker is gone");
    return begun.resumeIds[0] ?? "";
  }
  /** Asks the service to cancel a task that genmesh has stored. */
  const cancel = (resumeId: string) =>
    world.upstreams.cancel({
      ...{
        upstream,
        upstreamModel: "",
        jobId: "job_1",
        resumeId,
        signal: AbortSignal.timeout(20_000),
      },
      kind: model.spec.case as "video",
    });
  return {
    ...{ clock, service, looked, world, job, generate, leave },
    cancel,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

describe.each(names)("the shipped catalog at %s", (name) => {
  test("makes an output to its end, and is charged for one", async () => {
    await using it = await begin(name);
    await expect(it.generate(it.job())).resolves.toHaveLength(1);
    expect([it.service.paid().length, it.service.server.seen("create").length]).toEqual([1, 1]);
    expect(it.service.files.seen("file")[0]?.headers.authorization).toBeUndefined();
  });

  test("fails for what the service refuses once it has begun, which costs nothing", async () => {
    await using it = await begin(name);
    it.service.plan({ end: "refused" });
    await expect(it.generate(it.job())).rejects.toMatchObject({ fault: "content_policy" });
    expect(it.service.paid()).toEqual([]);
    expect(it.world.logLines.join("")).not.toMatch(/in words of the service|risk control/);
  });

  test("fails where the service fails", async () => {
    await using it = await begin(name);
    it.service.plan({ end: "failed" });
    const fault = name === "minimax-music" ? "unknown" : "failed";
    await expect(it.generate(it.job())).rejects.toMatchObject({ fault });
    expect(it.service.paid()).toEqual([]);
  });

  test("never asks again where the answer to a request was lost", async () => {
    await using it = await begin(name);
    it.service.server.next("create", { kind: "lost" });
    const job = it.job();
    await expect(it.generate(job)).rejects.toMatchObject({ fault: "unknown" });
    expect([it.service.server.seen("create").length, job.resumeIds]).toEqual([1, []]);
    // The one task that is charged is the job that counts as lost.
    expect(it.service.paid()).toHaveLength(1);
  });
});

test.each(withReferences)("a task of %s may have a reference", async (name) => {
  await using it = await begin(name);
  await expect(it.generate(it.job({ references: 1 }))).resolves.toHaveLength(1);
  const [sent] = it.service.tasks;
  expect(JSON.stringify(sent?.input)).toContain(png.toString("base64"));
});

describe.each(withTasks)("a task of %s", (name) => {
  test("is found again by its stored id, and not begun twice", async () => {
    await using it = await begin(name);
    const resumeId = await it.leave();
    it.service.finish();
    await expect(it.generate(it.job({ resumeId }))).resolves.toHaveLength(1);
    expect([it.service.server.seen("create").length, it.service.paid().length]).toEqual([1, 1]);
  });

  test("whose link ended while nobody was there is looked at for a fresh one", async () => {
    await using it = await begin(name);
    const resumeId = await it.leave();
    it.service.finish();
    const { hasFreshLinks, linkMs, recordMs } = it.service.facts;
    await it.clock.sleep(linkMs ?? 0);
    const made = it.generate(it.job({ resumeId }));
    if (hasFreshLinks) await expect(made).resolves.toHaveLength(1);
    else await expect(made).rejects.toMatchObject({ fault: "failed" });
    // Where the record lasts no longer than the link, no file was asked for.
    if (recordMs !== linkMs) expect(it.service.files.seen("file").length).toBeGreaterThan(0);
    expect(it.service.server.seen("create")).toHaveLength(1);
  });

  test("goes on where the service is started again meanwhile", async () => {
    await using it = await begin(name);
    const resumeId = await it.leave();
    await it.looked.stop();
    const away = { fault: "unknown" };
    await expect(it.generate(it.job({ resumeId }))).rejects.toMatchObject(away);
    await it.looked.start();
    it.service.finish();
    await expect(it.generate(it.job({ resumeId }))).resolves.toHaveLength(1);
    expect([it.service.server.seen("create").length, it.service.paid().length]).toEqual([1, 1]);
  });

  test("whose link has ended is looked at once more, for a fresh one", async () => {
    await using it = await begin(name);
    it.service.plan({ deadLinks: 1 });
    const made = it.generate(it.job());
    if (it.service.facts.hasFreshLinks) await expect(made).resolves.toHaveLength(1);
    else await expect(made).rejects.toMatchObject({ fault: "failed" });
    expect(it.service.server.seen("create")).toHaveLength(1);
  });

  test("is looked at again where a look is refused for its key, or fails", async () => {
    await using it = await begin(name);
    it.looked.next("look", reply(401, {}), reply(503, {}), reply(429, {}), { kind: "drop" });
    await expect(it.generate(it.job())).resolves.toHaveLength(1);
    expect(it.service.paid()).toHaveLength(1);
  });
});

const withRecords = withTasks.filter((name) => factsOf(name).recordMs);
test.each(withRecords)("a task of %s fails whose record is gone", async (name) => {
  await using it = await begin(name);
  const resumeId = await it.leave();
  it.service.finish();
  await it.clock.sleep(it.service.facts.recordMs ?? 0);
  await expect(it.generate(it.job({ resumeId }))).rejects.toMatchObject({ fault: "failed" });
  expect(it.service.server.seen("create")).toHaveLength(1);
});

const expiring = withTasks.filter((name) => factsOf(name).expires);
test.each(expiring)("a task of %s fails that took too long there", async (name) => {
  await using it = await begin(name);
  it.service.plan({ end: "expired" });
  await expect(it.generate(it.job())).rejects.toMatchObject({ fault: "failed" });
  expect(it.service.paid()).toEqual([]);
});

/** Answers to looks that say nothing of the task. */
const inPassing: readonly (readonly [DeclaredName, string, Behaviour])[] = [
  ...[1000, 1001, 1002, 1004, 1008, 1024, 1033, 2049].map(
    (status_code) =>
      ["hailuo", String(status_code), passing(200, { base_resp: { status_code } })] as const,
  ),
  ["kling", "1004", passing(401, { code: 1004 })],
  ["kling", "1303", passing(429, { code: 1303 })],
  ["google", "400", passing(400, [{ error: { code: 400, status: "INVALID_ARGUMENT" } }])],
  ["bfl", "an unknown state", passing(200, { status: "Dreaming", result: null })],
  ...[400012, 500044, 500069, 99999].map(
    (ErrCode) => ["pixverse", String(ErrCode), passing(200, { ErrCode, Resp: null })] as const,
  ),
];
test.each(inPassing)("%s may answer %s to a look at a task that runs", async (name, _, answer) => {
  await using it = await begin(name);
  it.looked.next("look", answer);
  await expect(it.generate(it.job())).resolves.toHaveLength(1);
  expect([it.service.server.seen("create").length, it.service.paid().length]).toEqual([1, 1]);
});

/** The meaning of each documented answer to a request that begins a task. */
const meant: Readonly<Record<string, object>> = {
  refusedInput: { fault: "content_policy" },
  empty: { fault: "not_taken", refusal: "account_empty" },
  busy: { fault: "not_taken", refusal: "too_many_requests" },
  overloaded: { fault: "not_taken", refusal: "too_many_requests" },
  denied: { fault: "not_taken", refusal: "denied" },
  unsure: { fault: "unknown" },
  down: { fault: "not_taken", isCertain: true },
};
const answers = Object.entries<Facts>(declaredFacts).flatMap(([name, facts]) =>
  Object.keys(facts.answers).map((word) => [name as DeclaredName, word] as const),
);

test.each(answers)("%s answers %s, and nothing is asked again", async (name, word) => {
  await using it = await begin(name);
  it.service.server.next("create", it.service.facts.answers[word] as Behaviour);
  await expect(it.generate(it.job())).rejects.toMatchObject(meant[word] ?? {});
  expect([it.service.server.seen("create").length, it.service.paid()]).toEqual([1, []]);
});

const cancelled = names.filter((name) => declaredFacts[name].cancel);
describe.each(cancelled)("a cancel at %s", (name) => {
  test.each(["waiting", "running", "done"] as const)("of a task that is %s", async (state) => {
    await using it = await begin(name);
    const resumeId = await it.leave();
    for (let steps = ["waiting", "running", "done"].indexOf(state); steps > 0; steps--) {
      it.service.advance();
    }
    const isCancelled = it.service.facts.cancel?.in.includes(state) === true;
    expect(await it.cancel(resumeId)).toBe(isCancelled);
    const [task] = it.service.tasks;
    expect(task?.state).toBe(isCancelled ? "cancelled" : state);
    // A task that has ended keeps its record, so that its video can still be fetched.
    if (state !== "done") return;
    await expect(it.generate(it.job({ resumeId }))).resolves.toHaveLength(1);
  });
});

test("a cancel at MiniMax is understood in the words of both its pages", async () => {
  await using it = await begin("minimax", { isOther: true });
  expect(await it.cancel(await it.leave())).toBe(true);
  expect(it.service.tasks[0]?.state).toBe("cancelled");
});

describe("keys", () => {
  test("never go to a host that an answer of BFL names beyond its own", async () => {
    await using it = await begin("bfl");
    await using foreign = await startDeclaredService("bfl");
    const polling_url = `${foreign.server.origin}/v1/get_result?id=1`;
    it.service.server.next("create", reply(200, { id: "1", polling_url }) as Behaviour);
    await expect(it.generate(it.job())).rejects.toMatchObject({ fault: "failed" });
    expect(foreign.server.requests).toEqual([]);
  });

  test("go to Google's own origin for a file, and not to the store that it redirects to", async () => {
    await using it = await begin("google");
    await it.generate(it.job());
    expect(it.service.server.seen("own")[0]?.headers["x-goog-api-key"]).toBe(it.service.key);
    expect(it.service.files.seen("file")[0]?.headers["x-goog-api-key"]).toBeUndefined();
  });

  test("of Kling are signed anew for a task that takes longer than one lasts", async () => {
    await using it = await begin("kling");
    it.service.plan({ pace: "held" });
    const made = it.generate(it.job());
    await it.service.server.request("look", 400);
    it.service.finish();
    await expect(made).resolves.toHaveLength(1);
    const tokens = it.service.server.requests.map(({ headers }) => headers.authorization);
    expect(new Set(tokens).size).toBeGreaterThan(1);
  });
});

test("the tasks of an account beyond the service's bound wait at genmesh", async () => {
  await using it = await begin("bfl");
  it.service.plan(...Array.from({ length: 24 }, () => ({ pace: "held" as const })));
  const left = new AbortController();
  const { task } = it.job();
  const jobs = Array.from({ length: 24 }, () =>
    it.world.upstreams.generate({ ...task, signal: left.signal }).catch(() => undefined),
  );
  await it.service.cluster?.request("look", 24);
  const refusal = { fault: "not_taken", refusal: "too_many_requests" };
  await expect(it.generate(it.job())).rejects.toMatchObject(refusal);
  left.abort();
  await Promise.all(jobs);
  expect(it.service.paid()).toHaveLength(24);
});
