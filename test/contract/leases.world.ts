import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { openSqlite } from "#kit/store/sqlite.ts";
import { manualClock } from "#kit/time/clock.ts";
import { type ApplyRequest, EntryKind } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { createSqliteUsageStore } from "../../services/text/store/store-sqlite.ts";
import {
  events,
  type Feed,
  feed,
  type ScriptedUpstreams,
  scriptedUpstreams,
} from "./usage.upstream.ts";
import {
  createTextWorld,
  principal,
  type Streamed,
  type TextWorld,
  type TextWorldOptions,
} from "./usage.world.ts";

/** A request of these tests. */
export const ask = { model: "chat-1", input: "Tell me of the sea." };
export const asStream = { ...ask, stream: true };
/** The start of a test's first process. */
export const start = manualClock().now();
/** The price of an answer with `someUsage` in USD micros. */
export const cost = 311n;

/** The treatment of text's call to billing: it passes, it never arrives, or it arrives and its reply is lost. */
export type Fate = "pass" | "lost" | "reply lost" | "never";

/** Processes over one file, one after the other or at once, with connections to billing that can fail. */
export interface LeaseWorld {
  /** The first process, new for each test. */
  readonly world: TextWorld;
  readonly upstreams: ScriptedUpstreams;
  /** The stream that the upstream began last. */
  readonly current: Feed;
  /** Chooses the treatment of the next call by the kind of its first operation. */
  fate(kind: string | undefined): Fate | Promise<Fate>;
  /** Opens another process over the same file. */
  open(atMs: number): Promise<TextWorld>;
  usage(): ReturnType<typeof createSqliteUsageStore>;
  /** Rows of requests that have not ended. */
  rows(): ReturnType<ReturnType<typeof createSqliteUsageStore>["due"]>;
  /** A stream that has begun. Once it has streamed for `ms`, it has a row. */
  streaming(ms?: number): Promise<Streamed>;
}

/** The world of the tests of a file. It is called at the file's top. */
export function leaseWorld(): LeaseWorld {
  let folder: string;
  let upstreams: ScriptedUpstreams;
  let current: Feed;
  let world: TextWorld;
  const worlds: TextWorld[] = [];
  const away = () => new ConnectError("away", Code.Unavailable);
  const between: Interceptor = (next) => async (request) => {
    if (request.method.name !== "Apply" || request.stream) return next(request);
    const { operations } = request.message as ApplyRequest;
    const what = await own.fate(operations[0]?.operation.case);
    if (what === "never") return new Promise(() => {});
    if (what === "lost") throw away();
    const response = await next(request);
    if (what === "reply lost") throw away();
    return response;
  };
  const make = async (options: Partial<TextWorldOptions>) => {
    const made = await createTextWorld({ upstreams, between, ...options });
    worlds.push(made);
    return made;
  };
  const open = (atMs: number, isNew = false) =>
    make({ file: join(folder, "genmesh.db"), isNew, clock: manualClock(atMs) });
  const usage = () => createSqliteUsageStore(openSqlite(join(folder, "genmesh.db")));
  const rows = () => usage().due(Number.MAX_SAFE_INTEGER, 100);
  const own: LeaseWorld = {
    get world() {
      return world;
    },
    get upstreams() {
      return upstreams;
    },
    get current() {
      return current;
    },
    fate: () => "pass",
    open,
    usage,
    rows,
    async streaming(ms = 0) {
      const stream = world.stream("RESPONSES", asStream);
      await stream.next();
      current.push(events.delta("word ".repeat(40)));
      await stream.next();
      if (ms === 0) return stream;
      await world.clock.advance(ms);
      // The first count of a process starts its thread.
      await vi.waitFor(async () => expect(await rows()).toHaveLength(1), 40_000);
      return stream;
    },
  };
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "genmesh-lease-"));
    own.fate = () => "pass";
    upstreams = scriptedUpstreams(async ({ signal }) => {
      current = feed(signal);
      current.push(events.begin());
      return current.answer;
    });
    world = await open(start, true);
  });
  afterEach(async () => {
    own.fate = () => "pass";
    for (const one of worlds.splice(0)) await one[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  return own;
}

/** The account's journal, oldest first, without its grant. */
export async function journal(of: TextWorld) {
  const { entries } = await of.admin.billing.listEntries({ accountId: principal.accountId });
  return entries.filter(({ kind }) => kind !== EntryKind.GRANT).reverse();
}

/** Checks that all charges and holds agree with the journal, and that no hold is open. */
export async function booksAgree(of: TextWorld): Promise<void> {
  for await (const { finding } of of.admin.billing.auditLedger({})) {
    expect(finding.case).toBe("summary");
  }
  const list = await journal(of);
  const opened = list.filter(({ kind }) => kind === EntryKind.HOLD);
  const ended = list.filter(({ heldDelta }) => heldDelta < 0n);
  expect(ended.map(({ holdId }) => holdId).sort()).toEqual(
    opened.map(({ holdId }) => holdId).sort(),
  );
  expect(await of.wallet()).toMatchObject({ reserved: 0n });
}

/** Moves the clock in steps until `done` resolves. */
export async function advanceUntil(of: TextWorld, done: () => Promise<void>, stepMs = 1_000) {
  await vi.waitFor(async () => {
    await of.clock.advance(stepMs);
    await done();
  }, 40_000);
}
