// Lists a test server for each protocol of media, so that one test holds all drivers to the same rules.

import type { Behaviour } from "../../test/support/scripted-behaviours.ts";
import { startScriptedMediaUpstream } from "../../test/support/scripted-media-upstream.ts";
import type { SeenRequest } from "../../test/support/scripted-upstream.ts";
import { startComfy } from "../../test/support/upstreams/comfyui.ts";
import { startFal } from "../../test/support/upstreams/fal.ts";
import { startReplicate } from "../../test/support/upstreams/replicate.ts";
import { falCalls, replicateCalls } from "./by-template/calls.fixture.ts";
import { comfyCalls } from "./comfyui/calls.fixture.ts";
import type { GenerationTask } from "./media/port.ts";
import { sampleMp3, sampleMp4, samplePng } from "./media/samples.fixture.ts";
import {
  imageRequest,
  musicRequest,
  reference,
  upstreamAt,
  upstreamKey,
  videoRequest,
} from "./media/world.fixture.ts";

/** One route of a test server. */
interface ScriptedRoute {
  /** Sets the behaviours of its next requests, one each. */
  next(...behaviours: Behaviour[]): void;
  /** Sets the behaviour of all requests from now on. Undefined: the usual answer. */
  always(behaviour: Behaviour | undefined): void;
  seen(): readonly SeenRequest[];
}

/** A test server of one protocol, and a job of one kind for it. */
export interface Member extends AsyncDisposable {
  asked: Pick<GenerationTask, "upstream" | "request"> & Partial<GenerationTask>;
  /** The route of its output's file. */
  file: ScriptedRoute;
  /** The routes that answer the state of the task. */
  looks: readonly ScriptedRoute[];
  /** The bytes of its output. */
  bytes: Uint8Array;
}

const film = { ...videoRequest, mode: "i2v" } as const;
const requests = { image: imageRequest, video: film, music: musicRequest };
type Kind = keyof typeof requests;

interface ServerOf<Route extends string> extends AsyncDisposable {
  next(route: Route, ...behaviours: Behaviour[]): void;
  always(route: Route, behaviour: Behaviour | undefined): void;
  seen(route: Route): readonly SeenRequest[];
}

function routeOf<Route extends string>(server: ServerOf<Route>, route: Route): ScriptedRoute {
  return {
    next: (...behaviours) => server.next(route, ...behaviours),
    always: (behaviour) => server.always(route, behaviour),
    seen: () => server.seen(route),
  };
}

async function referencesOf(kind: Kind) {
  return kind === "video" ? [reference(await samplePng()), reference(await samplePng())] : [];
}

async function fal(kind: Kind): Promise<Member> {
  const server = await startFal({ key: upstreamKey });
  const { images, video, sound } = server.outputs;
  return {
    asked: {
      ...{ upstream: upstreamAt(server.origin, "FAL"), request: requests[kind] },
      ...{ call: falCalls[kind], references: await referencesOf(kind) },
    },
    file: routeOf(server.files, "file"),
    looks: [routeOf(server, "status"), routeOf(server, "result")],
    bytes: { image: images[0] as Uint8Array, video, music: sound }[kind],
    [Symbol.asyncDispose]: server[Symbol.asyncDispose],
  };
}

async function replicate(kind: Kind): Promise<Member> {
  const server = await startReplicate({ key: upstreamKey });
  const { images, video, sound } = server.outputs;
  return {
    asked: {
      ...{ upstream: upstreamAt(server.baseUrl, "REPLICATE"), request: requests[kind] },
      ...{ call: replicateCalls[kind], references: await referencesOf(kind) },
    },
    file: routeOf(server.files, "file"),
    looks: [routeOf(server, "get")],
    bytes: { image: images[0] as Uint8Array, video, music: sound }[kind],
    [Symbol.asyncDispose]: server[Symbol.asyncDispose],
  };
}

async function comfyui(kind: Kind, vintage: "2026" | "2024"): Promise<Member> {
  const server = await startComfy({ vintage, key: upstreamKey });
  const { images, sound } = server.outputs;
  const video = sampleMp4({ seconds: 5 });
  server.outputs.video = video;
  server.usual.pace = "looks";
  const asked = { durationSeconds: 5, resolution: "480p", aspectRatio: "9:16" };
  const looks =
    vintage === "2026" ? (["job", "queue"] as const) : (["queue", "historyAll"] as const);
  return {
    asked: {
      upstream: upstreamAt(server.origin, "COMFYUI"),
      request: kind === "video" ? { ...film, ...asked } : requests[kind],
      ...{ call: comfyCalls[kind], references: (await referencesOf(kind)).slice(0, 1) },
    },
    file: routeOf(server, "view"),
    looks: [...looks, "history" as const].map((route) => routeOf(server, route)),
    bytes: { image: images[0] as Uint8Array, video, music: sound }[kind],
    [Symbol.asyncDispose]: server[Symbol.asyncDispose],
  };
}

async function openai(kind: "image" | "video"): Promise<Member> {
  const outputs = { images: [await samplePng()], video: sampleMp4(), sound: sampleMp3() };
  const server = await startScriptedMediaUpstream("openai", outputs);
  server.wording.imagesAs = "url";
  return {
    asked: { upstream: upstreamAt(server.baseUrl), request: requests[kind] },
    file: routeOf(server, kind === "image" ? "GET /made/*" : "GET /videos/*/content"),
    looks: kind === "image" ? [] : [routeOf(server, "GET /videos/*")],
    bytes: kind === "image" ? (outputs.images[0] as Uint8Array) : outputs.video,
    [Symbol.asyncDispose]: server[Symbol.asyncDispose],
  };
}

async function genmesh(kind: Kind): Promise<Member> {
  const outputs = { images: [await samplePng()], video: sampleMp4(), sound: sampleMp3() };
  const server = await startScriptedMediaUpstream("genmesh", outputs);
  const area = { image: "images", video: "videos", music: "music" }[kind];
  const { images, video, sound } = outputs;
  return {
    asked: { upstream: upstreamAt(server.baseUrl, "GENMESH"), request: requests[kind] },
    file: routeOf(server, `GET /${area}/generations/*/files/*`),
    looks: [routeOf(server, `GET /${area}/generations/*`)],
    bytes: { image: images[0] as Uint8Array, video, music: sound }[kind],
    [Symbol.asyncDispose]: server[Symbol.asyncDispose],
  };
}

/** Every protocol that names files, with every kind that it makes. */
export const members: readonly (readonly [string, () => Promise<Member>])[] = [
  ["fal: a picture", () => fal("image")],
  ["fal: a film", () => fal("video")],
  ["fal: music", () => fal("music")],
  ["Replicate: a picture", () => replicate("image")],
  ["Replicate: a film", () => replicate("video")],
  ["Replicate: music", () => replicate("music")],
  ["ComfyUI: a picture", () => comfyui("image", "2026")],
  ["ComfyUI: a film", () => comfyui("video", "2026")],
  ["ComfyUI: music", () => comfyui("music", "2026")],
  ["ComfyUI of 2024: a picture", () => comfyui("image", "2024")],
  ["OpenAI: a picture", () => openai("image")],
  ["OpenAI: a film", () => openai("video")],
  ["genmesh: a picture", () => genmesh("image")],
  ["genmesh: a film", () => genmesh("video")],
  ["genmesh: music", () => genmesh("music")],
];
