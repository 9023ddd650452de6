import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import type { ResponsesServerEvent } from "openai/resources/responses/responses";
import { ResponsesWS } from "openai/resources/responses/ws";
import { expect, test } from "vitest";
import { testCatalog } from "../e2e/catalog.ts";
import { startProcess } from "../e2e/process.ts";
import { freePort } from "../support/free-port.ts";
import { closedBaseUrl, startScriptedUpstream } from "../support/scripted-upstream.ts";

test("OpenAI's client of the socket gets its answer from a process that stops, and goes on at the next", async () => {
  await using stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), "genmesh-drain-"));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const upstream = stack.use(await startScriptedUpstream());
  const { baseUrl: main } = upstream;
  const catalog = testCatalog({ main, backup: main, nowhere: await closedBaseUrl() });
  const catalogFile = join(dataDir, "catalog.yaml");
  await writeFile(catalogFile, JSON.stringify(catalog));
  // The next process has the same address, as behind a Service.
  const options = { dataDir, catalogFile, env: { PORT: String(await freePort()) } };
  const start = async () => {
    const process = await startProcess(options);
    stack.defer(() => process.kill());
    return process;
  };

  const first = await start();
  const { baseUrl: baseURL, key: apiKey } = first.caller;
  const reconnect = { onReconnecting() {}, initialDelay: 100, maxDelay: 1_000, maxRetries: 100 };
  const socket = new ResponsesWS(new OpenAI({ baseURL, apiKey }), { reconnect });
  stack.defer(() => socket.close());
  const came: ResponsesServerEvent[] = [];
  socket.on("event", (event) => came.push(event));
  const next = <T>(listen: (resolve: (value: T) => void) => void) =>
    new Promise<T>((resolve, reject) => {
      listen(resolve);
      socket.on("error", reject);
    });
  const reconnecting = next<number>((resolve) =>
    socket.on("reconnecting", ({ closeCode }) => resolve(closeCode)),
  );
  const reconnected = next<void>((resolve) => socket.on("reconnected", resolve));

  const rest = Promise.withResolvers<void>();
  upstream.script({ kind: "ok", restAfter: rest.promise });
  const begun = next<void>((resolve) => socket.on("response.output_text.delta", () => resolve()));
  const ended = () =>
    next<string>((resolve) =>
      socket.on("response.completed", ({ response }) => resolve(response.output_text ?? "")),
    );
  const one = ended();
  socket.send({ type: "response.create", model: "scripted", input: "Hi" });
  await begun;
  const stopped = first.stop();
  rest.resolve();
  await one;
  expect(await reconnecting).toBe(1012);
  expect(await stopped).toBe(0);

  upstream.script({ kind: "ok" });
  const second = await start();
  await reconnected;
  const two = ended();
  socket.send({ type: "response.create", model: "scripted", input: "Hi again" });
  await two;
  expect(came.filter(({ type }) => type === "response.completed")).toHaveLength(2);
  expect(upstream.requests).toHaveLength(2);
  expect(await second.caller.settled()).toMatchObject({ monthSpend: 60, reserved: 0 });
});
