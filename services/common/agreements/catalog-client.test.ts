import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason, isRefusal, RefusalError } from "#kit/base/errors.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { rpcService } from "#kit/rpc/service.ts";
import { manualClock } from "#kit/time/clock.ts";
import {
  CatalogService,
  ModelKind,
  type Snapshot,
  SnapshotSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createCatalogView, viewOf } from "./catalog-client.ts";
import { createPeers } from "./peers.ts";

const snapshotOf = (version: string): Snapshot =>
  create(SnapshotSchema, {
    version,
    upstreams: { a: { name: "a" }, b: { name: "b" } },
    models: [
      { id: "chat-1", kind: ModelKind.CHAT, active: true, upstream: "a", fallbackUpstreams: ["b"] },
      { id: "music-1", kind: ModelKind.MUSIC, active: true, upstream: "b" },
      { id: "old-1", kind: ModelKind.CHAT, active: false, upstream: "a" },
    ],
  });

type Watch = ServiceImpl<typeof CatalogService>["watchSnapshots"];

/** A live catalog that follows `watch`, one script a call. `calls` are the versions that it reported as known. */
function following(...scripts: Watch[]) {
  const clock = manualClock();
  const calls: string[] = [];
  const warnings: string[] = [];
  const log = createLogger("warn", { write: (line) => warnings.push(JSON.parse(line).msg) });
  const impl: ServiceImpl<typeof CatalogService> = {
    checkDraft: () => ({}),
    getText: () => ({}),
    listVersions: () => ({}),
    putInForce: () => ({}),
    listUpstreamKeys: () => ({}),
    setUpstreamKey: () => ({}),
    deleteUpstreamKey: () => ({}),
    getSnapshot: () => ({}),
    watchSnapshots(req, context) {
      calls.push(req.knownVersion);
      const script = scripts[Math.min(calls.length, scripts.length) - 1];
      if (!script) throw new Error("no script");
      return script(req, context);
    },
  };
  const transport = createDirectTransport({
    services: () => [rpcService(CatalogService, impl)],
    clientInterceptors: [],
    serverInterceptors: [],
  });
  const { catalog } = createPeers(() => transport);
  const live = createCatalogView({ catalog, clock, log });
  onTestFinished(() => live[Symbol.asyncDispose]());
  return { live, clock, calls, warnings };
}

/** Sends these snapshots, then is silent until the caller leaves. */
const sends = (...versions: string[]): Watch =>
  async function* (_, { signal }) {
    for (const version of versions) yield { snapshot: snapshotOf(version) };
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
/** Sends this snapshot and ends. */
const ends = (version: string): Watch =>
  async function* () {
    yield { snapshot: snapshotOf(version) };
  };
const away: Watch = () => {
  throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
};

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("a live catalog", () => {
  test("has nothing before the first snapshot, then the last that came", async () => {
    const { live } = following(sends("v1", "v2"));
    expect(() => live.current()).toThrow(
      expect.objectContaining({ reason: ErrorReason.SERVICE_UNAVAILABLE }),
    );
    expect(live.notReady()).toBeDefined();
    await live.ready();
    expect(live.notReady()).toBeUndefined();
    await settle();
    expect(live.current().snapshot.version).toBe("v2");
  });

  test("keeps its snapshot while the catalog is away, and finds its way back", async () => {
    const { live, clock, calls, warnings } = following(
      ends("v1"),
      ...Array<Watch>(8).fill(away),
      sends("v2"),
    );
    await live.ready();
    await settle();
    const view = live.current();
    expect(view.snapshot.version).toBe("v1");
    for (let i = 0; i < 60 && live.current() === view; i++) {
      expect(live.current().findModel("chat-1").id).toBe("chat-1");
      await clock.advance(250);
      await settle();
    }
    expect(live.current().snapshot.version).toBe("v2");
    expect(calls).toEqual(["", ...Array(9).fill("v1")]);
    expect(warnings).toEqual(["catalog cannot be reached"]);
    expect(view.snapshot.version).toBe("v1");
  });

  test("gives up a watch that has gone silent", async () => {
    const { live, clock, calls } = following(sends("v1"), sends("v2"));
    await live.ready();
    await clock.advance(14_000);
    expect(calls).toHaveLength(1);
    for (let i = 0; i < 20 && live.current().snapshot.version === "v1"; i++) {
      await clock.advance(500);
      await settle();
    }
    expect(live.current().snapshot.version).toBe("v2");
    expect(calls).toEqual(["", "v1"]);
  });

  test("heartbeats keep a watch", async () => {
    const beats: Watch = async function* (_, { signal }) {
      yield { snapshot: snapshotOf("v1") };
      for (let i = 0; i < 10; i++) {
        await clock.sleep(5_000, signal);
        yield {};
      }
    };
    const { live, clock, calls } = following(beats);
    await live.ready();
    const view = live.current();
    for (let i = 0; i < 8; i++) {
      await clock.advance(5_000);
      await settle();
    }
    expect(calls).toHaveLength(1);
    expect(live.current()).toBe(view);
  });

  test("ends its watch when it is disposed of", async () => {
    let left = false;
    const { live } = following(async function* (_, { signal }) {
      yield { snapshot: snapshotOf("v1") };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      left = true;
    });
    await live.ready();
    await live[Symbol.asyncDispose]();
    await settle();
    expect(left).toBe(true);
    expect(live.current().snapshot.version).toBe("v1");
  });
});

describe("a view", () => {
  const view = viewOf(snapshotOf("v1"));

  test.each([
    ["unknown", "chat-9", undefined],
    ["inactive", "old-1", undefined],
    ["of another kind", "music-1", ModelKind.CHAT],
    ["a name of every object", "constructor", undefined],
  ])("refuses a model that is %s", (_, id, kind) => {
    try {
      view.findModel(id, kind);
    } catch (error) {
      expect(isRefusal(error, ErrorReason.MODEL_NOT_FOUND)).toBe(true);
      expect(error).toMatchObject({ param: "model", metadata: { model: id } });
      return;
    }
    expect.unreachable();
  });

  test("finds a model, of its kind or of any, and its upstreams in order", () => {
    const model = view.findModel("chat-1", ModelKind.CHAT);
    expect(view.findModel("chat-1")).toBe(model);
    expect(view.upstreamsOf(model).map(({ name }) => name)).toEqual(["a", "b"]);
    expect(view.upstreamsOf(view.findModel("music-1")).map(({ name }) => name)).toEqual(["b"]);
    expect(view.activeModels.map(({ id }) => id)).toEqual(["chat-1", "music-1"]);
  });
});
