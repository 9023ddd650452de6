import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Fastify from "fastify";
import { pino } from "pino";
import { expect, test } from "vitest";
import { appRoutes } from "./app-files.ts";

/** The routes of a built app, before the first request. */
async function openApp(stack: AsyncDisposableStack) {
  const appFolder = await mkdtemp(join(tmpdir(), "genmesh-app-"));
  stack.defer(() => rm(appFolder, { recursive: true }));
  await mkdir(join(appFolder, "assets"));
  await writeFile(join(appFolder, "index.html"), "<p>the console</p>");
  await writeFile(join(appFolder, "start.js"), "0");
  const app = Fastify();
  stack.defer(() => app.close());
  const log = pino({ level: "silent" });
  await app.register(async (scope) => appRoutes(scope, { log, appFolder }), {
    prefix: "/console",
  });
  const ask = (path: string, headers = {}) => app.inject({ url: `/console${path}`, headers });
  return { ask, appFolder };
}

test.each([
  ["gzip, deflate, br", "br"],
  ["GZIP", "gzip"],
  ["br;q=0, gzip;q=0.5", "gzip"],
  ["br;q=0.000,gzip; Q=0", undefined],
  ["brotli", undefined],
  ["", undefined],
])("a browser that takes %j has it as %s", async (accepted, coding) => {
  await using stack = new AsyncDisposableStack();
  const { ask } = await openApp(stack);
  const answer = await ask("/", { "accept-encoding": accepted });
  expect([answer.statusCode, answer.headers["content-encoding"]]).toEqual([200, coding]);
});

test("the first script is there under one name, without the long life of the others", async () => {
  await using stack = new AsyncDisposableStack();
  const { ask } = await openApp(stack);
  const start = await ask("/start.js");
  expect([start.statusCode, start.body]).toEqual([200, "0"]);
  expect(start.headers["content-type"]).toBe("text/javascript; charset=utf-8");
  expect(start.headers["cache-control"]).toBeUndefined();
});

test("an app that could not be read is read again for the next request", async () => {
  await using stack = new AsyncDisposableStack();
  const { ask, appFolder } = await openApp(stack);
  await rm(join(appFolder, "assets"), { recursive: true });
  expect((await ask("/")).statusCode).toBe(500);
  await mkdir(join(appFolder, "assets"));
  await writeFile(join(appFolder, "assets/main.js"), "1");
  expect((await ask("/")).body).toBe("<p>the console</p>");
  expect((await ask("/assets/main.js")).body).toBe("1");
});
