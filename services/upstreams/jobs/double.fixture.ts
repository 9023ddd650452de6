// An upstream for tests of declared HTTP, which answers what a test gives it.

import { create } from "@bufbuild/protobuf";
import type { JsonObject } from "#kit/base/json.ts";
import { ModelCallSchema, UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type Answer,
  type Double,
  type Files,
  reply,
  replyText,
  startDouble,
  startFiles,
} from "../../../test/support/upstreams/double.ts";
import type { GenerationTask } from "../media/port.ts";
import { sampleMp4, samplePng } from "../media/samples.fixture.ts";
import { upstreamAt, videoRequest } from "../media/world.fixture.ts";
import { declarationSchema } from "./declaration.ts";

export const png = await samplePng();
export const mp4 = Buffer.from(await sampleMp4());

export type Route = "create" | "look" | "result" | "cancel" | "own" | "other";

/** An upstream that plays what a test gives it: an answer for each look, the last one again and again. */
export async function startDeclared(
  looks: Answer[] = [],
  more: { create?: Answer; result?: Answer; cancel?: Answer } = {},
) {
  const files = await startFiles();
  const states = [...looks];
  const server: Double<Route> = await startDouble<Route>([
    {
      ...{ name: "create", method: "POST", path: /^\/v1\/videos(?:\/[\w-]+)?$/ },
      answer: () => more.create ?? reply(200, { data: { task_id: "t/1" } }),
    },
    {
      ...{ name: "look", method: "GET", path: /^\/v1\/tasks\/(.+)$/ },
      answer: () => (states.length > 1 ? states.shift() : states[0]) ?? replyText(404),
    },
    {
      ...{ name: "result", method: "GET", path: /^\/v1\/files\/(.+)$/ },
      answer: () => more.result ?? replyText(404),
    },
    {
      ...{ name: "cancel", method: "DELETE", path: /^\/v1\/tasks\/(.+)$/ },
      answer: () => more.cancel ?? reply(200, {}),
    },
    {
      ...{ name: "own", method: "GET", path: /^\/own\/(.+)$/ },
      answer: () => ({ kind: "file", bytes: mp4, type: "video/mp4" }),
    },
  ]);
  return {
    server,
    files,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
    },
  };
}

export const usual = {
  create: { post: "/videos/${model}", take: { id: "data.task_id" } },
  poll: { get: "/tasks/${id}", state: "status", progress: "percent" },
  states: {
    queued: "running",
    working: "running",
    done: "done",
    failed: "failed",
    moderated: "refused",
  },
  answers: {
    refused: { "error.code": ["*moderat*"], "video.ok": [false] },
    empty: { "error.code": [1101] },
    busy: { "error.code": ["Busy*"] },
    denied: { "error.code": [1004] },
    unsure: { "error.code": [5000] },
    failed: { code: ["!0"] },
  },
};

export function taskAt(
  { server }: { server: Double<Route> },
  declared: object = usual,
  more: Partial<GenerationTask> = {},
  path = "/v1",
): Partial<GenerationTask> & Pick<GenerationTask, "upstream" | "request"> {
  const upstream = create(UpstreamSchema, {
    ...upstreamAt(`${server.origin}${path}`, "JOBS"),
    jobs: JSON.stringify(declarationSchema.parse(declared)),
  });
  const input = {
    model: "${model}",
    prompt: "${prompt}",
    n: "${job}",
    first: { $each: "${references[0]}", data: "${item:base64}", type: "${item:mimeType}" },
  };
  const call = create(ModelCallSchema, {
    ...{ mode: "", model: "film-2", input: JSON.stringify(input), output: "video.url" },
  });
  return { upstream, request: videoRequest, call, ...more };
}

export const done = (files: Files, more: JsonObject = {}) =>
  reply(200, {
    status: "done",
    video: { url: files.add({ bytes: mp4, type: "video/mp4" }) },
    ...more,
  });
export const state = (status: string, more: JsonObject = {}) => reply(200, { status, ...more });

/** An upstream whose last look names a video. */
export async function filming(looks: Answer[] = []) {
  const started = await startDeclared();
  const all = [...looks, done(started.files)];
  started.server.next("look", ...(all as never[]));
  return started;
}
