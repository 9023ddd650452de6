import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Fastify from "fastify";
import { pino } from "pino";
import { expect, test } from "vitest";
import { appRoutes } from "./app-files.ts";

test("an app that could not be read is read again for the next request", async () => {
  await using stack = new AsyncDisposableStack();
  const appFolder = await mkdtemp(join(tmpdir(), "genmesh-app-"));
  stack.defer(() => rm(appFolder, { recursive: true }));
  await writeFile(join(appFolder, "index.html"), "<p>the console</p>");
  const app = Fastify();
  stack.defer(() => app.close());
  const log = pino({ level: "silent" });
  await app.register(async (scope) => appRoutes(scope, { log, appFolder }), {
    prefix: "/console",
  });
  const ask = (path: string) => app.inject({ url: `/console${path}` });
  expect((await ask("/")).statusCode).toBe(500);
  await mkdir(join(appFolder, "assets"));
  await writeFile(join(appFolder, "assets/main.js"), "1");
  expect((await ask("/")).body).toBe("<p>the console</p>");
  expect((await ask("/assets/main.js")).body).toBe("1");
});
