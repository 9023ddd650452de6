import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createAuthWorld, until } from "../../test/contract/keys.world.ts";
import { createAuth } from "./index.ts";
import { createWatcher } from "./watch.ts";

let world: Awaited<ReturnType<typeof createAuthWorld>>;
let leave: AbortController;
beforeEach(async () => {
  world = await createAuthWorld();
  leave = new AbortController();
});
afterEach(async () => {
  leave.abort();
  await world[Symbol.asyncDispose]();
});

interface Heard {
  atMs: number;
  revision: bigint;
  keyIds: string[];
}

/** Watches, keeps the messages, and records the end. */
function watch(sinceRevision = 0n) {
  const heard: Heard[] = [];
  const ended = (async () => {
    const messages = world.mesh.watchKeys({ sinceRevision }, { signal: leave.signal });
    for await (const one of messages) {
      heard.push({
        atMs: world.clock.now(),
        revision: one.revision,
        keyIds: one.changedKeyIds,
      });
    }
  })();
  ended.catch(() => {});
  return { heard, ended };
}

async function newKeyId(): Promise<string> {
  const { key } = await world.admin.createAccount({ name: "n" });
  return key?.keyId ?? "";
}

describe("a watch", () => {
  test("speaks at once, then at least every second", async () => {
    const { heard } = watch();
    await until(() => heard.length === 1);
    const start = world.clock.now();
    for (let i = 0; i < 400; i += 1) await world.clock.advance(10);
    const times = heard.map((one) => one.atMs - start);
    const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
    expect(gaps.length).toBeGreaterThanOrEqual(4);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1_000);
    expect(heard.every((one) => one.keyIds.length === 0)).toBe(true);
  });

  test("tells a revocation within one look at the store", async () => {
    const keyId = await newKeyId();
    const { heard } = watch();
    await until(() => heard.length === 1);
    await world.admin.revokeKey({ keyId });
    await world.clock.advance(250);
    await until(() => heard.some((one) => one.keyIds.includes(keyId)));
    expect(heard.at(-1)?.keyIds).toEqual([keyId]);
  });

  test("goes on where it was left, without a gap", async () => {
    const [first, second] = [await newKeyId(), await newKeyId()];
    const before = watch();
    await until(() => before.heard.length === 1);
    const revision = before.heard[0]?.revision ?? 0n;
    await world.admin.revokeKey({ keyId: second });
    const after = watch(revision);
    await until(() => after.heard.length === 1);
    expect(after.heard[0]?.keyIds).toEqual([second]);
    expect(after.heard[0]?.keyIds).not.toContain(first);
  });

  test("a change between two watches of one feed reaches both, also what the poller knew already", async () => {
    const keyId = await newKeyId();
    const early = watch();
    await until(() => early.heard.length === 1);
    await world.admin.rotateKey({ keyId });
    // The poller has not looked yet, so the first read of this watch answers it.
    const late = watch(early.heard[0]?.revision);
    await until(() => late.heard.length === 1);
    expect(late.heard[0]?.keyIds).toEqual([keyId]);
    await world.clock.advance(250);
    await until(() => early.heard.length > 1);
    expect(early.heard[1]?.keyIds).toContain(keyId);
  });

  test("many changes between two looks come as one message", async () => {
    const { heard } = watch();
    await until(() => heard.length === 1);
    const ids = [await newKeyId(), await newKeyId(), await newKeyId()];
    await world.clock.advance(250);
    await until(() => heard.length === 2);
    expect(new Set(heard[1]?.keyIds)).toEqual(new Set(ids));
  });

  test("from a revision of the future it is refused", async () => {
    const { ended } = watch(99n);
    await expect(ended).rejects.toMatchObject({ reason: ErrorReason.WATCH_RESET });
  });

  test("from a negative revision it is refused", async () => {
    const { ended } = watch(-1n);
    await expect(ended).rejects.toMatchObject({ reason: ErrorReason.INVALID_ARGUMENT });
  });

  test("ends with a reset when the store's revision falls (a restored backup)", async () => {
    await newKeyId();
    const { heard, ended } = watch();
    await until(() => heard.length === 1);
    await world.clock.advance(250);
    world.sqlite.run("UPDATE auth_revision SET revision = 1");
    await world.clock.advance(250);
    await expect(ended).rejects.toMatchObject({ reason: ErrorReason.WATCH_RESET });
  });

  test("more changes than one message holds are a reset", async () => {
    const made = await world.admin.createAccount({ name: "n" });
    const { heard, ended } = watch();
    await until(() => heard.length === 1);
    const revision = heard[0]?.revision ?? 0n;
    await Promise.all(
      Array.from({ length: 998 }, () =>
        world.admin.createKey({ accountId: made.account?.accountId ?? "" }),
      ),
    );
    for (let i = 0; i < 3; i += 1) await newKeyId();
    await world.clock.advance(250);
    await expect(ended).rejects.toMatchObject({ reason: ErrorReason.WATCH_RESET });
    await expect(watch(revision).ended).rejects.toMatchObject({
      reason: ErrorReason.WATCH_RESET,
    });
  });

  test("falls silent while the store does not answer, and auth is then not ready", async () => {
    const { heard } = watch();
    await until(() => heard.length === 1);
    expect(world.auth.notReady()).toBeUndefined();
    world.sqlite.run("ALTER TABLE auth_revision RENAME TO gone");
    await world.clock.advance(5_000);
    expect(heard).toHaveLength(1);
    await world.clock.advance(250);
    expect(world.auth.notReady()).toBe("the key store does not answer");
    world.sqlite.run("ALTER TABLE gone RENAME TO auth_revision");
    await world.clock.advance(250);
    await until(() => heard.length === 2);
    expect(world.auth.notReady()).toBeUndefined();
  });

  test("drain ends it in good order, and a new one may begin", async () => {
    const { heard, ended } = watch();
    await until(() => heard.length === 1);
    await world.auth.drain(new AbortController().signal);
    await expect(ended).resolves.toBeUndefined();
    const again = watch(heard[0]?.revision);
    await until(() => again.heard.length === 1);
  });

  test("is forgotten when its client leaves", async () => {
    const { heard } = watch();
    await until(() => heard.length === 1);
    expect(await world.metrics.text()).toContain("genmesh_auth_watchers 1");
    leave.abort();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await world.metrics.text()).toContain("genmesh_auth_watchers 0");
  });
});

test("auth is not ready before it has started", async () => {
  const auth = createAuth({
    clock: world.clock,
    ids: randomIds,
    log: world.log,
    metrics: createMetrics(),
    database: { kind: "sqlite", sqlite: world.sqlite },
  });
  expect(auth.notReady()).toBe("auth has not started");
  await auth.start();
  expect(auth.notReady()).toBeUndefined();
  await auth[Symbol.asyncDispose]();
});

async function first<T>(messages: AsyncIterable<T>): Promise<T | undefined> {
  for await (const one of messages) return one;
  return undefined;
}

test("what a slow reader missed is one message, each key once, at the latest revision", async () => {
  const watcher = createWatcher(3, 0);
  watcher.push({ revision: 5n, keyIds: ["a", "b"] }, 10);
  watcher.push({ revision: 4n, keyIds: ["b", "c"] }, 20);
  expect(watcher.toldAtMs()).toBe(20);
  expect(await first(watcher.messages())).toEqual({ revision: 5n, keyIds: ["a", "b", "c"] });
});

test("a reader too slow for the bound begins anew", async () => {
  const watcher = createWatcher(3, 0);
  watcher.push({ revision: 5n, keyIds: ["a", "b"] }, 10);
  watcher.push({ revision: 6n, keyIds: ["c", "d"] }, 20);
  await expect(first(watcher.messages())).rejects.toMatchObject({
    reason: ErrorReason.WATCH_RESET,
  });
});

test("the first end stands", async () => {
  const watcher = createWatcher(3, 0);
  watcher.end();
  watcher.reset();
  expect(await first(watcher.messages())).toBeUndefined();
});
