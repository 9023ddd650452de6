import { statSync } from "node:fs";
import { cp, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { noise } from "#kit/images/samples.fixture.ts";
import { sha256Of } from "../e2e/media-world.ts";
import { type CommandEnd, runOperatorCommand } from "../support/operator-command.ts";
import { until } from "../support/until.ts";
import { operatorOf } from "./operator.ts";
import { type RunningMesh, startRunning, tempFolder, type Variables } from "./process.ts";

const clockAhead = fileURLToPath(new URL("../support/clock-ahead.ts", import.meta.url));
/** Milliseconds after which no lease of a process that was there before a restore is left. */
const leasesOverMs = 60_000;

/** A backup of a service with work under way, and the answers that its callers had before. */
interface Before {
  backup: string;
  key: string;
  printed: CommandEnd;
  /** The file that was uploaded. */
  file: { id: string; sha256: string };
  /** A job that had ended, one that ran, and one that waited for it. */
  jobs: string[];
}

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let folder: string;
let before: Before;

beforeAll(async () => {
  folder = stack.use(await tempFolder()).path;
  before = await backUpUnderLoad();
});

/** Backs up while jobs and streams are under way, and lets the service go on until its jobs have ended. */
async function backUpUnderLoad(): Promise<Before> {
  const dataDir = join(folder, "first");
  const backup = join(folder, "backup");
  await using mesh = await startRunning({ GENMESH_DATA_DIR: dataDir, GENMESH_VIDEO_WORKERS: "1" });
  const key = mesh.bannerKey ?? "";
  const file = await upload(mesh, key);
  const image = { model: "image-1", prompt: "a fox" };
  const jobs = [await submit(mesh, key, "images", image)];
  await ended(mesh, key, jobs[0] ?? "");
  const load = keepStreaming(mesh, key);
  await load.begun;
  for (const prompt of ["the sea", "the wind"]) {
    jobs.push(await submit(mesh, key, "videos", { model: "svc-video-1-5", prompt }));
  }
  await until("one to run", async () => (await jobOf(mesh, key, jobs[1])).status === "running");
  const printed = await genmesh({ GENMESH_DATA_DIR: dataDir }, "backup", backup);
  expect((await jobOf(mesh, key, jobs[2])).status).toBe("queued");
  await load.end();
  for (const job of jobs) expect(await ended(mesh, key, job)).toBe("completed");
  // A copy of the files may last until jobs have ended that were running in the database's copy.
  await cp(join(dataDir, "blobs"), join(backup, "blobs"), {
    recursive: true,
    filter: (_, to) => !statSync(to, { throwIfNoEntry: false })?.isFile(),
  });
  return { backup, key, printed, file, jobs };
}

const genmesh = (env: Variables, ...words: string[]) => runOperatorCommand(words, env);

async function ask(mesh: RunningMesh, key: string, path: string, body?: object | FormData) {
  const isForm = body instanceof FormData;
  return fetch(mesh.baseUrl + path, {
    headers: {
      authorization: `Bearer ${key}`,
      ...(body && !isForm ? { "content-type": "application/json" } : {}),
    },
    ...(body ? { method: "POST", body: isForm ? body : JSON.stringify(body) } : {}),
  });
}

async function upload(mesh: RunningMesh, key: string) {
  const bytes = await noise().png().toBuffer();
  const form = new FormData();
  form.set("purpose", "vision");
  form.set("file", new Blob([bytes]), "noise.png");
  const answer = await ask(mesh, key, "/files", form);
  expect(answer.status).toBe(200);
  const { id } = (await answer.json()) as { id: string };
  return { id, sha256: sha256Of(bytes) };
}

/** The path of the new job. */
async function submit(mesh: RunningMesh, key: string, kind: string, body: object) {
  const answer = await ask(mesh, key, `/${kind}/generations`, body);
  expect(answer.status).toBe(202);
  const { id } = (await answer.json()) as { id: string };
  return `/${kind}/generations/${id}`;
}

interface JobAnswer {
  status: string;
  credits?: unknown;
  images?: { url: string; sha256: string }[];
  video?: { url: string; sha256: string };
}

async function jobOf(mesh: RunningMesh, key: string, path = ""): Promise<JobAnswer> {
  return (await ask(mesh, key, path)).json() as Promise<JobAnswer>;
}

const ended = (mesh: RunningMesh, key: string, path: string) =>
  until(
    `the end of ${path}`,
    async () => {
      const { status } = await jobOf(mesh, key, path);
      return status === "completed" || status === "failed" ? status : undefined;
    },
    { withinMs: 120_000 },
  );

/** Streams, one after the other, until `end` is called. */
function keepStreaming(mesh: RunningMesh, key: string) {
  const [begun, stop] = [Promise.withResolvers<void>(), new AbortController()];
  const body = { model: "chat-mini", input: "Tell me a story.", stream: true };
  const over = (async () => {
    while (!stop.signal.aborted) {
      const answer = await ask(mesh, key, "/responses", body);
      expect(answer.status).toBe(200);
      begun.resolve();
      await answer.text();
    }
  })();
  over.catch(begun.reject);
  return {
    begun: begun.promise,
    end: () => {
      stop.abort();
      return over;
    },
  };
}

test("says what it copied", () => {
  expect(before.printed).toEqual({ code: 0, err: "", out: expect.any(String) });
  expect(before.printed.out).toMatch(/^database +checked, \d+ bytes\nfiles +\d+, \d+ bytes$/m);
});

test("after a restore every hold ends, the books agree, and files and jobs are there once", async () => {
  const dataDir = join(folder, "second");
  const env = { GENMESH_DATA_DIR: dataDir };
  expect((await genmesh(env, "restore", before.backup)).err).toBe("");
  await using mesh = await startRunning({
    ...env,
    NODE_OPTIONS: `--import ${clockAhead}`,
    TEST_CLOCK_AHEAD_MS: String(leasesOverMs),
  });
  expect(mesh.bannerKey).toBeUndefined();
  const { key, file, jobs } = before;
  for (const job of jobs) expect(await ended(mesh, key, job)).toBe("completed");
  const operator = await operatorOf(mesh, dataDir);
  await until(
    "the holds' ends",
    async () => (await operator.billing.listHolds({})).holds.length === 0,
  );
  const audit = await genmesh(env, "ledger", "audit", "--server", mesh.grpcAddress);
  expect(audit).toMatchObject({ code: 0, out: expect.stringContaining("the books agree") });
  // An attempt that finds its names taken would be a second one.
  const shown = await genmesh(
    env,
    ...["job", "show", jobs[2]?.split("/").at(-1) ?? "", "--json", "--server", mesh.grpcAddress],
  );
  expect(JSON.parse(shown.out)).toMatchObject({ attempts: 1 });

  const content = await ask(mesh, key, `/files/${file.id}/content`);
  expect(sha256Of(Buffer.from(await content.arrayBuffer()))).toBe(file.sha256);
  for (const job of jobs) {
    const { images = [], video } = await jobOf(mesh, key, job);
    for (const { url, sha256 } of [...images, ...(video ? [video] : [])]) {
      const made = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
      expect(sha256Of(Buffer.from(await made.arrayBuffer()))).toBe(sha256);
    }
  }
});

test("a file that the copy lacks is answered as one that is not there", async () => {
  const dataDir = join(folder, "third");
  const env = { GENMESH_DATA_DIR: dataDir };
  expect((await genmesh(env, "restore", before.backup)).err).toBe("");
  await rm(join(dataDir, "blobs"), { recursive: true });
  await using mesh = await startRunning(env);
  const answer = await ask(mesh, before.key, `/files/${before.file.id}/content`);
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({ error: { code: "file_not_found" } });
});

test("a backup and what is restored from it are for their user alone", async () => {
  const dataDir = join(folder, "closed");
  await genmesh({ GENMESH_DATA_DIR: dataDir }, "restore", before.backup);
  for (const root of [before.backup, dataDir]) {
    const modes = new Set<string>();
    for (const entry of ["", ...(await readdir(root, { recursive: true }))]) {
      const found = await stat(join(root, entry));
      modes.add(`${found.isDirectory() ? "folder" : "file"} ${(found.mode & 0o777).toString(8)}`);
    }
    expect(modes).toEqual(new Set(["folder 700", "file 600"]));
    expect(await readFile(join(root, "admin-token"), "utf8")).toMatch(/^\w{40}\n$/);
  }
});

test("a restore is refused while a process uses the data directory, and where there is a state", async () => {
  const dataDir = join(folder, "used");
  const env = { GENMESH_DATA_DIR: dataDir };
  {
    await using mesh = await startRunning(env);
    const { code, err } = await genmesh(env, "restore", before.backup);
    expect(code).toBe(1);
    expect(err).toMatch(/^genmesh: GENMESH_DATA_DIR .+ is in use by process \d+/);
    mesh.kill("SIGTERM");
    await mesh.ended;
  }
  const names = await readdir(dataDir);
  const { code, err } = await genmesh(env, "restore", before.backup);
  expect({ code, err }).toEqual({
    code: 1,
    err: `genmesh: ${dataDir} has a state already: move it away, and restore again\n`,
  });
  expect(await readdir(dataDir)).toEqual(names);
});
