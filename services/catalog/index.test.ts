import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createPeers } from "#common/agreements/peers.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { type Clock, manualClock, systemClock } from "#kit/time/clock.ts";
import { promptly } from "../../test/support/promptly.ts";
import { checkCatalogFile, createCatalog } from "./index.ts";
import { heartbeatMs, pollMs } from "./limits.ts";

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-catalog-"));
  file = join(folder, "catalog.yaml");
});
afterEach(() => rm(folder, { recursive: true }));

/** A catalog with one music model at this price. */
const priced = (credits: number) => `
upstreams: { studio: { protocol: builtin } }
models: [{ id: music-1, kind: music, upstream: studio, creditPrice: ${credits} }]
`;

/** The service over `file`, a client of it, and its log. */
function world(clock: Clock) {
  const lines: { level: number; msg: string; path?: string }[] = [];
  const log = createLogger("trace", { write: (line) => lines.push(JSON.parse(line)) });
  const metrics = createMetrics();
  const service = createCatalog({ file, clock, log, metrics, workshop: createWorkshop() });
  const transport = createDirectTransport({
    services: () => service.rpc,
    clientInterceptors: [],
    serverInterceptors: [serverErrorInterceptor({ log, ids: randomIds })],
  });
  onTestFinished(() => service[Symbol.asyncDispose]());
  return { service, client: createPeers(() => transport).catalog, lines, metrics };
}

/** Advances the time, half a second at a time, until `done` is true. */
async function passUntil(clock: ReturnType<typeof manualClock>, done: () => boolean) {
  while (!done()) {
    await clock.advance(pollMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("the service", () => {
  test("answers with its snapshot, or with nothing where the caller has it", async () => {
    await writeFile(file, priced(20));
    const { service, client } = world(manualClock());
    expect(service.notReady()).toMatch(/not read/);
    await expect(client.getSnapshot({})).rejects.toThrow(/not available/);
    await service.start();
    expect(service.notReady()).toBeUndefined();
    const { snapshot } = await client.getSnapshot({});
    expect(snapshot?.models.map(({ id }) => id)).toEqual(["music-1"]);
    const knownVersion = snapshot?.version ?? "";
    expect((await client.getSnapshot({ knownVersion })).snapshot).toBeUndefined();
    expect((await client.getSnapshot({ knownVersion: "other" })).snapshot).toBeDefined();
  });

  test("does not start on a broken file, and says everything that is wrong with it", async () => {
    await writeFile(file, priced(20).replace("creditPrice: 20", "creditPrice: -1, colour: red"));
    const { service } = world(manualClock());
    await expect(service.start()).rejects.toThrow(
      /models\[0\]\.creditPrice: .*\n.*models\[0\]\.colour: unknown key/,
    );
    expect(service.notReady()).toBeDefined();
    await rm(file);
    await expect(service.start()).rejects.toThrow(/ENOENT/);
  });

  test("sends a watcher the snapshot, heartbeats, and each later snapshot", async () => {
    await writeFile(file, priced(20));
    const clock = manualClock();
    const { service, client } = world(clock);
    await service.start();
    const leave = new AbortController();
    const watch = client.watchSnapshots({}, { signal: leave.signal })[Symbol.asyncIterator]();
    const first = (await watch.next()).value?.snapshot;
    expect(first?.version).toMatch(/^[0-9a-f]{16}$/);

    const beat = watch.next();
    await clock.advance(heartbeatMs);
    const heard = await beat;
    expect(heard.done).toBe(false);
    expect(heard.value?.snapshot).toBeUndefined();

    await writeFile(file, priced(21));
    let second: Awaited<ReturnType<typeof watch.next>>["value"];
    const news = (async () => {
      do second = (await watch.next()).value;
      while (!second?.snapshot);
    })();
    await passUntil(clock, () => second?.snapshot !== undefined);
    await news;
    expect(second?.snapshot?.version).not.toBe(first?.version);
    expect(second?.snapshot?.models[0]?.spec.value).toMatchObject({ creditPrice: 21n });
    leave.abort();
  });

  test("a watcher that knows the version gets a heartbeat first", async () => {
    await writeFile(file, priced(20));
    const { service, client } = world(manualClock());
    await service.start();
    const knownVersion = (await client.getSnapshot({})).snapshot?.version ?? "";
    const leave = new AbortController();
    const watch = client.watchSnapshots({ knownVersion }, { signal: leave.signal });
    const { done, value } = await watch[Symbol.asyncIterator]().next();
    expect(done).toBe(false);
    expect(value?.snapshot).toBeUndefined();
    leave.abort();
  });

  test("ends watches when it drains", async () => {
    await writeFile(file, priced(20));
    const { service, client } = world(manualClock());
    await service.start();
    const watch = client.watchSnapshots({})[Symbol.asyncIterator]();
    await watch.next();
    const end = watch.next();
    await service.drain(AbortSignal.timeout(1_000));
    expect((await end).done).toBe(true);
    expect((await client.getSnapshot({})).snapshot).toBeDefined();
  });
});

describe("a change of the file", () => {
  test("to a broken one keeps the last good one, and logs each fault once", async () => {
    await writeFile(file, priced(20));
    const clock = manualClock();
    const { service, client, lines, metrics } = world(clock);
    await service.start();
    const { snapshot: good } = await client.getSnapshot({});
    const faults = () => lines.filter(({ level }) => level === 50).map(({ path }) => path);

    await writeFile(file, priced(20).replace("music,", "musik, colour: red,"));
    await passUntil(clock, () => faults().length > 0);
    let looks = 0;
    await passUntil(clock, () => looks++ === 50);
    expect(faults()).toEqual(["models[0].kind"]);
    expect((await client.getSnapshot({})).snapshot).toBe(good);
    expect(await metrics.text()).toMatch(/genmesh_catalog_file_valid 0\n/);
    expect(await metrics.text()).toContain('genmesh_catalog_reads_total{result="refused"} 1');
    expect(service.notReady()).toBeUndefined();

    await writeFile(file, priced(30));
    await passUntil(clock, () => lines.filter(({ msg }) => msg === "catalog loaded").length === 2);
    const { snapshot } = await client.getSnapshot({});
    expect(snapshot?.version).not.toBe(good?.version);
    const text = await metrics.text();
    expect(text).toMatch(/genmesh_catalog_file_valid 1\n/);
    expect(text).toContain(`genmesh_catalog_info{version="${snapshot?.version}"} 1`);
    expect(text).not.toContain(`{version="${good?.version}"}`);
  });

  test("to the same content in other words makes no new snapshot", async () => {
    await writeFile(file, priced(20));
    const clock = manualClock();
    const { service, client, lines } = world(clock);
    await service.start();
    const { snapshot } = await client.getSnapshot({});
    await writeFile(file, `# a comment\n${priced(20)}`);
    await passUntil(clock, () => lines.some(({ msg }) => msg.includes("its content did not")));
    expect((await client.getSnapshot({})).snapshot).toBe(snapshot);
  });

  test("through the links of a ConfigMap is in force within 2 s of the machine's own time", async () => {
    for (const [name, credits] of [
      ["..1", 1],
      ["..2", 2],
    ] as const) {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, "catalog.yaml"), priced(credits));
    }
    await symlink("..1", join(folder, "..data"));
    await symlink(join("..data", "catalog.yaml"), file);
    const { service, client } = world(systemClock);
    await service.start();
    const leave = new AbortController();
    const watch = client.watchSnapshots({}, { signal: leave.signal })[Symbol.asyncIterator]();
    await watch.next();
    await symlink("..2", join(folder, "..new"));
    // The system clock's sleeps keep no process alive. This process must live until the change has come.
    const alive = setInterval(() => {}, 1_000);
    onTestFinished(() => clearInterval(alive));
    const { value } = await promptly(2_000, async () => {
      await rename(join(folder, "..new"), join(folder, "..data"));
      return watch.next();
    });
    expect(value?.snapshot?.models[0]?.spec.value).toMatchObject({ creditPrice: 2n });
    leave.abort();
  });
});

test("genmesh catalog check: faults with their paths, or the number of models", async () => {
  await writeFile(file, priced(20));
  expect(await checkCatalogFile(file)).toEqual({
    faults: [],
    models: 1,
    version: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
  await writeFile(file, priced(20).replace("creditPrice: 20", ""));
  expect(await checkCatalogFile(file)).toEqual({
    faults: [{ path: "models[0].creditPrice", message: "is required (line 3, column 10)" }],
    models: 0,
  });
  const away = await checkCatalogFile(join(folder, "nothing"));
  expect(away.faults[0]?.message).toMatch(/ENOENT/);
});
