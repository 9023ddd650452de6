import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import {
  sampleMp3,
  sampleMp4,
  samplePng,
} from "../../../services/upstreams/media/samples.fixture.ts";
import { answer } from "../scripted-answers.ts";
import type { Behaviour } from "../scripted-behaviours.ts";
import type { MediaOutputs } from "../scripted-media-upstream.ts";
import {
  type ScriptedUpstream,
  type SeenRequest,
  startScriptedUpstream,
  type UpstreamOptions,
} from "../scripted-upstream.ts";

/** The treatment of one request of a route, in place of the usual answer. */
export type Mishap =
  /** Sends this answer, and does nothing. */
  | Behaviour
  /** Carries the request out, and destroys the socket before the answer. */
  | { kind: "lost" }
  /** Carries the request out at once, and answers when the promise resolves. */
  | { kind: "held"; until: Promise<unknown> }
  /** For routes that give files: another content type, or the socket is destroyed after a number of bytes, or no byte follows them. */
  | { kind: "file"; type?: string; cutAfter?: number; hangAfter?: number };

/** The answer of a route. For a file, `Range` works. */
export type Answer = Behaviour | MadeFile;

/** A file as an answer. */
export interface MadeFile {
  kind: "file";
  bytes: Uint8Array;
  type: string;
  headers?: Record<string, string>;
}

/** One route of a double. */
export interface Route<Name extends string> {
  name: Name;
  method: string;
  /** Matches the whole path. `answer` gets its groups. */
  path: RegExp;
  answer(seen: SeenRequest, parts: string[]): Answer | Promise<Answer>;
}

/** A server that speaks another service's protocol, over real HTTP on the loopback. */
export interface Double<Name extends string> extends AsyncDisposable {
  /** Scheme, host and port. They stay the same after {@link start}. */
  origin: string;
  /** Every request in the order of arrival. */
  requests: SeenRequest[];
  /** The requests of one route. */
  seen(route: Name): SeenRequest[];
  /** The treatments of the next requests of a route, one each. */
  next(route: Name, ...mishaps: Mishap[]): void;
  /** The treatment of every request of a route from now on. Undefined: the usual answer again. */
  always(route: Name, mishap: Mishap | undefined): void;
  /** Resolves with the `n`th request of a route (from 1) once it has arrived. */
  request(route: Name, n: number): Promise<SeenRequest>;
  /** Connections that are open now. */
  openConnections(): number;
  /** Destroys every connection and refuses new ones until {@link start}. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Starts a double. `guard` may answer before a route does, to check keys. */
export async function startDouble<Name extends string>(
  routes: readonly Route<Name>[],
  {
    guard = () => undefined,
    unknown = reply(404, { detail: "Not Found" }),
    ...options
  }: UpstreamOptions & {
    guard?: (seen: SeenRequest, route: Name) => Answer | undefined;
    unknown?: Behaviour;
  } = {},
): Promise<Double<Name>> {
  const requests: SeenRequest[] = [];
  const byRoute = new Map<Name, SeenRequest[]>();
  const queued = new Map<Name, Mishap[]>();
  const standing = new Map<Name, Mishap>();
  let waiting: { route: Name; n: number; resolve: (seen: SeenRequest) => void }[] = [];
  const note = (route: Name, seen: SeenRequest) => {
    const all = [...(byRoute.get(route) ?? []), seen];
    byRoute.set(route, all);
    const isCome = (wait: (typeof waiting)[number]) => wait.route === route && wait.n <= all.length;
    for (const wait of waiting.filter(isCome)) wait.resolve(all[wait.n - 1] as SeenRequest);
    waiting = waiting.filter((wait) => !isCome(wait));
  };
  const handle = async (seen: SeenRequest, response: ServerResponse) => {
    requests.push(seen);
    const found = routeOf(routes, seen);
    if (!found) return answer(unknown, seen, response);
    const { route, parts } = found;
    note(route.name, seen);
    const mishap = queued.get(route.name)?.shift() ?? standing.get(route.name);
    if (mishap && !isCarriedOut(mishap)) return answer(mishap, seen, response);
    const usual = guard(seen, route.name) ?? (await usualAnswer(route, seen, parts));
    if (mishap?.kind === "lost") return answer({ kind: "drop" }, seen, response);
    if (mishap?.kind === "held") await mishap.until;
    if (response.destroyed) return;
    if (usual.kind !== "file") return answer(usual, seen, response);
    sendFile(usual, seen, response, mishap?.kind === "file" ? mishap : {});
  };
  const open = async (port: number): Promise<ScriptedUpstream> => {
    const server = await startScriptedUpstream({ ...options, port });
    server.script({ kind: "custom", handle });
    return server;
  };
  let server: ScriptedUpstream = await open(options.port ?? 0);
  const origin = new URL(server.baseUrl).origin;
  return {
    origin,
    requests,
    seen: (route) => byRoute.get(route) ?? [],
    next: (route, ...mishaps) => {
      queued.set(route, [...(queued.get(route) ?? []), ...mishaps]);
    },
    always: (route, mishap) => {
      if (mishap) standing.set(route, mishap);
      else standing.delete(route);
    },
    request: (route, n) =>
      new Promise((resolve) => {
        const seen = byRoute.get(route)?.[n - 1];
        if (seen) resolve(seen);
        else waiting.push({ route, n, resolve });
      }),
    openConnections: () => server.openConnections(),
    stop: () => server.close(),
    start: async () => {
      server = await open(Number(new URL(origin).port));
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** A JSON answer with a status and headers. */
export function reply(status: number, body: unknown, headers: Record<string, string> = {}) {
  const behaviour: Behaviour = {
    kind: "custom",
    handle(_seen, response) {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(body));
    },
  };
  return behaviour;
}

/** An answer of a status and plain text, often without text. */
export function replyText(status: number, text = "", headers: Record<string, string> = {}) {
  const behaviour: Behaviour = {
    kind: "custom",
    handle(_seen, response) {
      response.writeHead(status, { "content-type": "text/plain", ...headers });
      response.end(text);
    },
  };
  return behaviour;
}

/** Files on an origin of their own, because services keep outputs apart from their API. No key is needed. */
export interface Files extends Double<"file" | "put"> {
  /** Offers a file, and gives its URL. */
  add(file: Omit<MadeFile, "kind">): string;
  /** A URL for one PUT of bytes, and the URL of the file afterwards. */
  expect(type: string): { uploadUrl: string; fileUrl: string };
  /** The file at a URL. */
  read(url: string): Omit<MadeFile, "kind"> | undefined;
  /** The URL answers 404 from now on. */
  remove(url: string): void;
}

/** Starts a host for files. `guard` may answer before it does. */
export async function startFiles(
  guard?: (seen: SeenRequest) => Answer | undefined,
): Promise<Files> {
  const files = new Map<string, Omit<MadeFile, "kind">>();
  const expected = new Map<string, string>();
  const host = await startDouble<"file" | "put">(
    [
      {
        ...{ name: "file", method: "GET", path: /^\/files\/(.+)$/ },
        answer: ({ path }) => {
          const file = files.get(path);
          return file ? { kind: "file", ...file } : replyText(404, "Not Found");
        },
      },
      {
        ...{ name: "put", method: "PUT", path: /^\/files\/(.+)$/ },
        answer: ({ path, raw, headers, query }) => {
          const type = expected.get(path);
          if (type === undefined || !query.has("signature")) return replyText(403, "Forbidden");
          expected.delete(path);
          files.set(path, { bytes: raw, type: headers["content-type"] ?? type });
          return replyText(200);
        },
      },
    ],
    guard ? { guard } : {},
  );
  const pathFor = (type: string) => `/files/${randomUUID()}.${extensions[type] ?? "bin"}`;
  const at = (path: string) => `${host.origin}${path}`;
  return {
    ...host,
    add: (file) => {
      const path = pathFor(file.type);
      files.set(path, file);
      return at(path);
    },
    expect: (type) => {
      const path = pathFor(type);
      expected.set(path, type);
      return { uploadUrl: `${at(path)}?signature=once`, fileUrl: at(path) };
    },
    read: (url) => files.get(new URL(url).pathname),
    remove: (url) => void files.delete(new URL(url).pathname),
  };
}

/** Bytes that an input referred to. */
export interface Reference {
  /** The keys on the way to it, joined by dots. */
  at: string;
  bytes: Uint8Array;
}

/**
 * The references of an input: data URIs, and URLs that `read` knows. `read` gives null for its own URL without a file, and undefined for a
 * URL of others. No double fetches those.
 */
export function referencesIn(
  input: unknown,
  read: (url: string) => Uint8Array | null | undefined,
): { found: Reference[]; missing: string[] } {
  const found: Reference[] = [];
  const missing: string[] = [];
  const walk = (value: unknown, at: string[]) => {
    if (typeof value === "object" && value !== null) {
      for (const [key, part] of Object.entries(value)) walk(part, [...at, key]);
      return;
    }
    if (typeof value !== "string") return;
    const data = /^data:[^,]*;base64,(.*)$/s.exec(value)?.[1];
    const isUrl = /^https?:\/\//.test(value);
    const bytes =
      data !== undefined ? Buffer.from(data, "base64") : isUrl ? read(value) : undefined;
    if (bytes) found.push({ at: at.join("."), bytes });
    else if (bytes === null) missing.push(at.join("."));
  };
  walk(input, []);
  return { found, missing };
}

/** An image of 64 by 48, a video of 6 s and audio of 2 s. */
export async function sampleOutputs(): Promise<MediaOutputs> {
  return { images: [await samplePng()], video: sampleMp4(), sound: sampleMp3() };
}

/** The output of a model. */
export type Makes = "image" | "video" | "sound";

/** The output that a model's name suggests. */
export function makesByName(model: string): Makes {
  if (/video|veo|kling|seedance/.test(model)) return "video";
  return /music|ace-step|speech|tts/.test(model) ? "sound" : "image";
}

/** The images in turn, or the one video or audio file. */
export function bytesMade(makes: Makes, count: number, outputs: MediaOutputs): Uint8Array[] {
  if (makes === "video") return [outputs.video];
  if (makes === "sound") return [outputs.sound];
  const { images } = outputs;
  return Array.from({ length: count }, (_, at) => images[at % images.length] ?? new Uint8Array());
}

/** The media type that the bytes show. */
export function typeOfBytes(bytes: Uint8Array): string {
  const head = Buffer.from(bytes.subarray(0, 12)).toString("latin1");
  if (head.startsWith("\x89PNG")) return "image/png";
  if (head.startsWith("\xff\xd8")) return "image/jpeg";
  if (head.slice(4, 8) === "ftyp") return "video/mp4";
  if (head.startsWith("RIFF")) return head.endsWith("WEBP") ? "image/webp" : "audio/wav";
  return /^(ID3|\xff[\xe0-\xff])/.test(head) ? "audio/mpeg" : "application/octet-stream";
}

/** The usual ending of a file of a media type. */
export const extensions: Record<string, string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "video/mp4": "mp4",
  "audio/wav": "wav",
  "audio/mpeg": "mp3",
};

type CarriedOut = Extract<Mishap, { kind: "lost" | "held" | "file" }>;

function isCarriedOut(mishap: Mishap): mishap is CarriedOut {
  return mishap.kind === "lost" || mishap.kind === "held" || mishap.kind === "file";
}

function routeOf<Name extends string>(routes: readonly Route<Name>[], seen: SeenRequest) {
  for (const route of routes) {
    // Every double answers HEAD where it answers GET. Node leaves the body out.
    const isAsked =
      seen.method === route.method || (seen.method === "HEAD" && route.method === "GET");
    const parts = isAsked ? route.path.exec(seen.path) : null;
    if (parts)
      return { route, parts: parts.slice(1).map((part) => decodeURIComponent(part ?? "")) };
  }
  return undefined;
}

/** The answer of a route that throws, so that a test with an invalid request fails at once. */
async function usualAnswer<Name extends string>(
  route: Route<Name>,
  seen: SeenRequest,
  parts: string[],
): Promise<Answer> {
  try {
    return await route.answer(seen, parts);
  } catch (error) {
    return replyText(500, `500 Internal Server Error\n\n${error}`);
  }
}

function sendFile(
  { bytes, type, headers = {} }: MadeFile,
  seen: SeenRequest,
  response: ServerResponse,
  {
    type: otherType,
    cutAfter,
    hangAfter,
  }: { type?: string; cutAfter?: number; hangAfter?: number },
): void {
  const range = /^bytes=(\d+)-(\d*)$/.exec(seen.headers.range ?? "");
  const from = range ? Number(range[1]) : 0;
  const to = range?.[2] ? Math.min(Number(range[2]), bytes.length - 1) : bytes.length - 1;
  if (from > to) {
    response.writeHead(416, { "content-range": `bytes */${bytes.length}` });
    return void response.end();
  }
  const part = bytes.subarray(from, to + 1);
  response.writeHead(range ? 206 : 200, {
    ...headers,
    "content-type": otherType ?? type,
    "content-length": part.length,
    "accept-ranges": "bytes",
    ...(range && { "content-range": `bytes ${from}-${to}/${bytes.length}` }),
  });
  const stop = cutAfter ?? hangAfter;
  if (stop === undefined) return void response.end(part);
  response.write(part.subarray(0, stop), () => {
    if (cutAfter !== undefined) response.socket?.destroy();
  });
}
