import { beforeAll, describe, expect, test } from "vitest";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { startScriptedMediaUpstream } from "../../test/support/scripted-media-upstream.ts";
import { startComfy } from "../../test/support/upstreams/comfyui.ts";
import { startFal } from "../../test/support/upstreams/fal.ts";
import { startReplicate } from "../../test/support/upstreams/replicate.ts";
import { falCalls, replicateCalls } from "./by-template/calls.fixture.ts";
import type { Capabilities } from "./capabilities.ts";
import { comfyCalls } from "./comfyui/calls.fixture.ts";
import { sampleMp3, sampleMp4, samplePng } from "./media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  musicRequest,
  upstreamAt,
  upstreamKey,
  videoRequest,
} from "./media/world.fixture.ts";
import {
  isLocal,
  isNativeChat,
  isRepeatable,
  type ProtocolName,
  protocolName,
  protocolNames,
  protocols,
  servesText,
  speaksMessages,
} from "./protocols.ts";

const rows: Readonly<Record<ProtocolName, Capabilities>> = protocols;
const jobKinds = ["image", "video", "music"] as const;
const requests = {
  image: { ...imageRequest, count: 2, width: 64, height: 64 },
  video: { ...videoRequest, durationSeconds: 1, resolution: "96p" },
  music: musicRequest,
};
/** A protocol of a newer version that this one does not know. */
const unknown = 99 as UpstreamProtocol;

let images: Buffer[];
beforeAll(async () => {
  images = [await samplePng(64, 48), await samplePng(80, 40)];
});

/** An upstream of a protocol, and the calls of its models. Undefined where it needs no server. */
async function start(name: ProtocolName) {
  switch (name) {
    case "openai":
    case "genmesh": {
      const outputs = { images, video: sampleMp4({ seconds: 1 }), sound: sampleMp3(2) };
      return { scripted: await startScriptedMediaUpstream(name, outputs), calls: undefined };
    }
    case "fal": {
      const double = await startFal({ key: upstreamKey });
      double.outputs.video = sampleMp4({ seconds: 1 });
      return { scripted: { ...double, baseUrl: double.origin }, calls: falCalls };
    }
    case "replicate": {
      const double = await startReplicate({ key: upstreamKey });
      double.outputs.video = sampleMp4({ seconds: 1 });
      return { scripted: double, calls: replicateCalls };
    }
    case "comfyui": {
      const double = await startComfy({ key: upstreamKey });
      double.outputs.video = sampleMp4({ seconds: 1 });
      // The file that the workflow loads where a job has no reference.
      double.disk.set("input/example.png", images[0] as Buffer);
      double.usual.pace = "looks";
      return { scripted: { ...double, baseUrl: double.origin }, calls: comfyCalls };
    }
    default:
      return undefined;
  }
}

test("each row has a protocol of the wire to itself", () => {
  const wires = protocolNames.map((name) => rows[name].wire);
  expect(new Set(wires).size).toBe(protocolNames.length);
  expect(wires).not.toContain(UpstreamProtocol.UNSPECIFIED);
});

describe("a row says what its drivers do", () => {
  // A piece of music by builtin takes seconds to render. builtin/media.test.ts checks that row. The tests of jobs check its own.
  const made = protocolNames.flatMap((name) =>
    jobKinds.flatMap((kind) => {
      const isElsewhere = name === "jobs" || (name === "builtin" && kind === "music");
      return rows[name].serves[kind] && !isElsewhere ? [{ name, kind }] : [];
    }),
  );
  test.each(made)("$kind at $name", async ({ name, kind }) => {
    const abilities = rows[name].serves[kind];
    if (!abilities) throw new Error("no such kind");
    const { scripted, calls } = (await start(name)) ?? {};
    await using _scripted = scripted;
    await using world = await createWorld();
    const upstream = { ...upstreamAt(scripted?.baseUrl ?? ""), protocol: rows[name].wire };
    const asked = { upstream, request: requests[kind], call: calls?.[kind] };
    const { task, resumeIds, progress } = world.task(asked);
    await world.upstreams.generate(task);
    expect(resumeIds.length > 0).toBe(abilities.resume);
    if (/none|queue/.test(abilities.progress)) expect(progress).toEqual([]);
    if (abilities.progress === "outputs") expect(progress).toEqual([49, 99]);
    if (abilities.progress === "percent") expect(progress.length).toBeGreaterThan(0);
    const [begun] = scripted?.requests ?? [];
    if (name === "comfyui") {
      // It takes no key, and a second run costs nothing.
      expect(abilities.submit).toBe("repeatable");
    } else if (begun) {
      const takesKey = begun.headers["idempotency-key"] === task.idempotencyKey;
      expect(takesKey ? "repeatable" : "once").toBe(abilities.submit);
    }
    const before = scripted?.requests.length ?? 0;
    const { jobId, upstreamModel } = task;
    const signal = AbortSignal.timeout(10_000);
    const cancel = {
      jobId,
      kind,
      upstreamModel,
      upstream,
      resumeId: resumeIds[0] ?? "task",
      signal,
    };
    const isCancelled = await world.upstreams.cancel(cancel);
    if (!abilities.cancel) expect(isCancelled).toBe(false);
    expect((scripted?.requests.length ?? 0) > before).toBe(abilities.cancel);
  });

  test.each(["image", "video", "music"] as const)(
    "%s is made by no protocol whose row lacks it",
    async (kind) => {
      await using world = await createWorld();
      const lacking = protocolNames.filter((name) => !rows[name].serves[kind]);
      expect(lacking).toContain("chat-completions");
      for (const protocol of [...lacking.map((name) => rows[name].wire), unknown]) {
        const upstream = { ...upstreamAt("http://127.0.0.1:9"), protocol };
        const { task, sendings } = world.task({ upstream, request: requests[kind] });
        await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
        expect(sendings).toEqual([]);
      }
    },
  );
});

test("what text and workers ask of the table", () => {
  const { OPENAI, ANTHROPIC, GENMESH, CHAT_COMPLETIONS, BUILTIN } = UpstreamProtocol;
  const all = [OPENAI, ANTHROPIC, GENMESH, CHAT_COMPLETIONS, BUILTIN];
  expect(all.filter((one) => servesText(one, "chat"))).toEqual(all);
  expect(all.filter((one) => servesText(one, "responses"))).toEqual([
    ...[OPENAI, ANTHROPIC, GENMESH, BUILTIN],
  ]);
  expect(all.filter((one) => servesText(one, "compact"))).toEqual([OPENAI, GENMESH, BUILTIN]);
  expect(all.filter(speaksMessages)).toEqual([ANTHROPIC]);
  expect(all.filter(isNativeChat)).toEqual([GENMESH, CHAT_COMPLETIONS]);
  expect(all.filter(isLocal)).toEqual([BUILTIN]);
  expect(all.filter((one) => isRepeatable({ protocol: one, jobs: "" }, "video"))).toEqual([
    GENMESH,
    BUILTIN,
  ]);
});

test("a protocol that only a newer version knows serves nothing here", () => {
  expect(protocolName(unknown)).toBeUndefined();
  expect(servesText(unknown, "chat")).toBe(false);
  expect(servesText(unknown, "responses")).toBe(false);
  expect(isRepeatable({ protocol: unknown, jobs: "" }, "image")).toBe(false);
  expect(isLocal(unknown)).toBe(false);
});
