// Sends the console's page and the files that it loads, or a page that waits while they are built.

import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { madeOnce } from "#kit/base/memo.ts";
import { type AppBuild, createAppBuilds } from "./app-build.ts";
import { escaped, sendPage } from "./guard.ts";

/** A file of the app in the form that is sent. */
interface AppFile {
  contentType: string;
  plain: Buffer;
  br: Buffer;
  gzip: Buffer;
}

/** A build in memory: the page, its first script, and the other files that it loads, by name. */
interface LoadedApp {
  folder: string;
  page: AppFile;
  start: AppFile;
  assets: ReadonlyMap<string, AppFile>;
}

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
  ".json": "application/json; charset=utf-8",
};

/**
 * `/console/`: the app's page at every path without a dot, because the app has its own places. `start.js` is its first script, which a
 * page of another build can use too. Below `assets/` are its other files, whose names change with their content.
 */
export function appRoutes(app: FastifyInstance, deps: Parameters<typeof createAppBuilds>[0]): void {
  const builds = createAppBuilds(deps);
  app.addHook("onClose", () => builds[Symbol.asyncDispose]());
  let loading: { folder: string; app: () => Promise<LoadedApp> } | undefined;
  const load = (folder: string): Promise<LoadedApp> => {
    if (loading?.folder !== folder) loading = { folder, app: madeOnce(() => loadApp(folder)) };
    return loading.app();
  };
  const sender =
    (which: "page" | "start") => async (request: FastifyRequest, reply: FastifyReply) => {
      const build = await builds.current();
      if (build.kind !== "built") return sendUnbuilt(reply, build);
      return sendFile(request, reply, (await load(build.folder))[which]);
    };
  const sendApp = sender("page");
  app.get("", { prefixTrailingSlash: "no-slash" }, async (_request, reply) =>
    reply.code(301).header("location", "console/").send(),
  );
  app.get("/", { prefixTrailingSlash: "slash" }, sendApp);
  app.get("/start.js", sender("start"));
  app.get<{ Params: { name: string } }>("/assets/:name", async (request, reply) => {
    // The loaded build, not the newest: a page asks for the files of its own build.
    const build = loading ?? (await builds.current());
    const folder = "folder" in build ? build.folder : undefined;
    const file = folder && (await load(folder)).assets.get(request.params.name);
    if (!file) return refuse(ErrorReason.UNKNOWN_ROUTE);
    reply.header("cache-control", "public, max-age=31536000, immutable");
    return sendFile(request, reply, file);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?", 1)[0] ?? "";
    const isPage = (request.method === "GET" || request.method === "HEAD") && !path.includes(".");
    return isPage ? sendApp(request, reply) : refuse(ErrorReason.UNKNOWN_ROUTE);
  });
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: AppFile) {
  const accepted = acceptedCodings(request.headers["accept-encoding"]);
  const coding = (["br", "gzip"] as const).find((one) => accepted.includes(one));
  reply.headers({ "content-type": file.contentType, vary: "Accept-Encoding" });
  if (!coding) return reply.send(file.plain);
  return reply.header("content-encoding", coding).send(file[coding]);
}

/** The codings of an Accept-Encoding, without those that it refuses by a weight of 0 (RFC 9110, 12.5.3). */
function acceptedCodings(header: string | string[] | undefined): string[] {
  return String(header ?? "")
    .toLowerCase()
    .split(",")
    .filter((one) => !/;\s*q\s*=\s*0(?:\.0*)?\s*$/.test(one))
    .map((one) => one.split(";", 1)[0]?.trim() ?? "");
}

/** A page that reloads by itself until the app is there. */
function sendUnbuilt(reply: FastifyReply, build: Exclude<AppBuild, { kind: "built" }>) {
  reply.header("retry-after", "1");
  if (build.kind === "failed") {
    const output = `<pre>${escaped(build.output)}</pre>`;
    return sendPage(reply, 503, "genmesh", `<h1>The console could not be built</h1>${output}`);
  }
  const again = '<meta http-equiv="refresh" content="1">';
  const text = "<p>The console is being built from its sources: some seconds, once.</p>";
  return sendPage(reply, 503, "genmesh", `${again}<h1>One moment</h1>${text}`);
}

async function loadApp(folder: string): Promise<LoadedApp> {
  const names = await readdir(join(folder, "assets"));
  const assets = await Promise.all(
    names.map(async (name) => [name, await loadFile(join(folder, "assets", name))] as const),
  );
  return {
    folder,
    page: await loadFile(join(folder, "index.html")),
    start: await loadFile(join(folder, "start.js")),
    assets: new Map(assets),
  };
}

/** Compressed once, off the event loop. */
async function loadFile(path: string): Promise<AppFile> {
  const plain = await readFile(path);
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(plain),
    promisify(gzip)(plain),
  ]);
  const contentType = contentTypes[extname(path)] ?? "application/octet-stream";
  return { contentType, plain, br, gzip: zipped };
}
