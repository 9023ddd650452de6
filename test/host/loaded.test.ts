import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { startCollector } from "../support/otlp.ts";
import { root, startProcess, tempFolder, type Variables } from "./process.ts";

const watch = join(root, "test/support/module-watch.ts");
const main = join(root, "services/host/main.ts");
const key = "key-of-the-loading-tests";
/** Packages that render, decode and count, and genmesh's modules that do. */
const heavy =
  /node_modules\/(sharp|opentype\.js|@fontsource|h264-mp4-encoder|mediabunny|@mediabunny|wasm-media-encoders|gpt-tokenizer)\/|kit\/images\/(decode|decoder|png)\.ts|services\/builtin\/(worker|image|sharp)\.ts|services\/builtin\/(audio|caption|music|paint|speech|video)\//;
/** The server of the gRPC port and its reflection. */
const ofGrpcPort = /node_modules\/@connectrpc\/connect-fastify\/|kit\/rpc\/(server|reflection)\.ts/;
/** Drivers of stores that a process with a SQLite file and a folder does not use. */
const ofServers = /node_modules\/(mongodb|bson|minio|@nats-io\/[^/]+)\//;
/** The packages of OpenTelemetry among the URLs, by name. */
const openTelemetryIn = (urls: readonly string[]) =>
  new Set(urls.flatMap((url) => /node_modules\/(@opentelemetry\/[^/]+)\//.exec(url)?.[1] ?? []));
/** The light parts of the built-in models, for the host and the drivers: bounds of threads, and the form of an answer. */
const light = ["index", "limits", "text/answer", "text/seal", "threads"];

/** Starts a genmesh and lists the modules that its main thread has loaded so far. */
async function started(env: Variables) {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await tempFolder());
  const modulesFile = join(folder.path, "modules");
  const child = stack.use(
    startProcess(process.execPath, ["--import", watch, main], {
      env: {
        ...{ PORT: "0", GRPC_PORT: `${await freePort()}`, GENMESH_OPS_PORT: `${await freePort()}` },
        ...{ GENMESH_DATA_DIR: join(folder.path, "data"), MODULES_FILE: modulesFile },
        ...{ GENMESH_BOOTSTRAP_API_KEY: key, ...env },
      },
    }),
  );
  const [, baseUrl = ""] = await child.says(/^genmesh.* is ready: (\S+)/);
  const owned = stack.move();
  return {
    baseUrl,
    loaded: async () => (await readFile(modulesFile, "utf8")).split("\n"),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

test("no renderer, tokenizer, decoder, driver or SDK is loaded at the start, nor in the main thread by a request", async () => {
  await using mesh = await started({});
  const ofBuiltin = async () =>
    (await mesh.loaded()).flatMap((url) => /services\/builtin\/(.*)\.ts$/.exec(url)?.[1] ?? []);
  expect((await mesh.loaded()).length).toBeGreaterThan(200);
  expect((await mesh.loaded()).filter((url) => heavy.test(url) || ofServers.test(url))).toEqual([]);
  expect(openTelemetryIn(await mesh.loaded())).toEqual(new Set(["@opentelemetry/api"]));
  expect((await ofBuiltin()).sort()).toEqual(light);

  const ask = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(`${mesh.baseUrl}/${path}`, init);
    expect(answer.ok, await answer.text()).toBe(true);
  };
  await ask("responses", { model: "chat-1", input: "hello" });
  await ask("speech/generations", { model: "speech-1", voice: "alloy", input: "hello" });
  expect((await mesh.loaded()).filter((url) => heavy.test(url))).toEqual([]);
});

test("a role that generates nothing loads nothing of what generates", async () => {
  const env = { GENMESH_ROLE: "catalog", GENMESH_MESH_TOKEN: "token-of-the-loading-tests" };
  await using mesh = await started(env);
  const loaded = await mesh.loaded();
  expect(loaded.filter((url) => heavy.test(url) || /services\/builtin/.test(url))).toEqual([]);
});

test("the server of the gRPC port is loaded when the public port is open", async () => {
  await using mesh = await started({});
  const loaded = await mesh.loaded();
  // They are loaded last. All modules of the public port are loaded before.
  const first = loaded.findIndex((url) => ofGrpcPort.test(url));
  expect(first).toBeGreaterThan(200);
  const own = loaded.slice(first).filter((url) => /(services|gateway)\//.test(url));
  expect(own.filter((url) => !/services\/kit\/rpc\//.test(url))).toEqual([]);
});

test("with a collector the SDK of OpenTelemetry is loaded", async () => {
  await using collector = await startCollector();
  await using mesh = await started({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  expect(openTelemetryIn(await mesh.loaded())).toContain("@opentelemetry/sdk-node");
});
