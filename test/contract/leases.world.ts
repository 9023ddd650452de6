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
/** When the first process of a test starts. */
export const start = manualClock().now();
/** What an answer with `someUsage` costs, USD micros. */
export const cost = 311n;

/** What becomes of a call of text at billing: it goes through, it never arrives, or it does and its reply is lost. */
export type Fate = "pass" | "lost" | "reply lost" | "never";

/** Processes over one file, one after the other or at once, and what lies between them and billing. */
export interface LeaseWorld {
  /** The first process, new for each test. */
  readonly world: TextWorld;
  readonly upstreams: ScriptedUpstreams;
  /** The stream that upstream began last. */
  readonly current: Feed;
  /** What becomes of the next call, by the kind of its first operation. */
  fate(kind: string | undefined): Fate | Promise<Fate>;
  /** Another process over the same file. */
  open(atMs: number): Promise<TextWorld>;
  usage(): ReturnType<typeof createSqliteUsageStore>;
  /** Rows of requests that are not over. */
  rows(): ReturnType<ReturnType<typeof createSqliteUsageStore>["due"]>;
  /** A stream that has begun, and has a row where it has streamed for `ms`. */
  streaming(ms?: number): Promise<Streamed>;
}

/** The world of the tests of a file; to be called at its top. */
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

/** Everything that was charged and held agrees with the journal, and nothing is held. */
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

/** Lets time pass in steps until `done` is. */
export async function advanceUntil(of: TextWorld, done: () => Promise<void>, stepMs = 1_000) {
  await vi.waitFor(async () => {
    await of.clock.advance(stepMs);
    await done();
  }, 40_000);
}
