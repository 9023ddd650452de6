import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { type DeclaredService, startDeclaredService } from "../support/upstreams/declared.ts";
import type { DeclaredName } from "../support/upstreams/declared-facts.ts";

/**
 * Clients of the services themselves, and vercel's. Each drives the double of its service from a request to a file, so the double answers as
 * the client's authors saw the service answer.
 */
const names = ["xai", "bytedance", "minimax", "black-forest-labs", "alibaba", "google"];
const packages = ["@runwayml/sdk", ...names.map((name) => `@ai-sdk/${name}`)];
/** A folder in which they are installed. They and what they need take 20 MB, so no install of genmesh has them. */
const folder = process.env.GENMESH_TEST_CLIENTS;
const missing = `needs GENMESH_TEST_CLIENTS, a folder with the result of \`npm install ${packages.join(" ")}\``;
if (folder === undefined) process.stderr.write(`skipped: the services' clients ${missing}\n`);
const require = createRequire(join(folder ?? "/", "package.json"));

// biome-ignore lint/suspicious/noExplicitAny: the clients are not there when types are checked.
type Any = any;

/** A client's model: images and some videos in one call, other videos by a call that begins and calls that look. */
interface Model {
  doGenerate?(options: object): Promise<Any>;
  doStart?(options: object): Promise<Any>;
  doStatus?(options: object): Promise<Any>;
}

interface Client {
  /** The package of vercel's. */
  from: string;
  /** The name by which the client knows its options. */
  provider: string;
  model(lib: Any, service: DeclaredService, hasImage: boolean): Model;
  /** Options for this client alone. */
  options?: object;
}

const bflFiles = "https://delivery.bfl.ai";

/** A fetch that asks doubles in place of hosts, and names the hosts in their answers. BFL's client asks no address of this machine. */
function asHosts(doubles: Readonly<Record<string, string>>): typeof fetch {
  const exchanged = (text: string, from: 0 | 1) =>
    Object.entries(doubles).reduce(
      (made, pair) => made.replaceAll(pair[from] ?? "", pair[1 - from] ?? ""),
      text,
    );
  return async (input, init) => {
    const { method = "GET", headers = {}, body = null } = init ?? {};
    // The client sends its key to every host of BFL, and the double's store takes none.
    const sent = String(input).startsWith(bflFiles) ? {} : headers;
    const answer = await fetch(exchanged(String(input), 0), { method, headers: sent, body });
    const type = answer.headers.get("content-type") ?? "";
    if (!type.includes("json")) return answer;
    const { status } = answer;
    const text = exchanged(await answer.text(), 1);
    return new Response(text, { status, headers: { "content-type": type } });
  };
}

const clients: Partial<Record<DeclaredName, Client>> = {
  xai: {
    ...{ from: "xai", provider: "xai" },
    model: (lib, { baseUrl: baseURL, key: apiKey }) =>
      lib.createXai({ baseURL, apiKey }).video("grok-imagine-video-1.5"),
  },
  ark: {
    ...{ from: "bytedance", provider: "bytedance" },
    model: (lib, { baseUrl: baseURL, key: apiKey }) =>
      lib.createByteDance({ baseURL, apiKey }).video("seedance-1-5-pro-251215"),
  },
  minimax: {
    ...{ from: "minimax", provider: "minimax" },
    model: (lib, { baseUrl: videoBaseURL, key: apiKey }) =>
      lib.createMiniMax({ videoBaseURL, apiKey }).video("MiniMax-H3"),
  },
  bfl: {
    ...{ from: "black-forest-labs", provider: "blackForestLabs" },
    model: (lib, { server, cluster, files, key: apiKey }) => {
      const doubles = {
        ...{ "https://api.bfl.ai": server.origin, [bflFiles]: files.origin },
        ...(cluster && { "https://api.eu1.bfl.ai": cluster.origin }),
      };
      return lib.createBlackForestLabs({ apiKey, fetch: asHosts(doubles) }).image("flux-2-pro");
    },
    options: { duration: undefined, resolution: undefined },
  },
  wan: {
    ...{ from: "alibaba", provider: "alibaba" },
    model: (lib, { baseUrl: videoBaseURL, key: apiKey }, hasImage) =>
      lib.createAlibaba({ videoBaseURL, apiKey }).video(hasImage ? "wan2.6-i2v" : "wan2.6-t2v"),
    options: { aspectRatio: undefined },
  },
  veo: {
    ...{ from: "google", provider: "google" },
    model: (lib, { baseUrl: baseURL, key: apiKey }) =>
      lib.createGoogle({ baseURL, apiKey }).video("veo-3.1-generate-preview"),
  },
};

/** Generates to the end. Gives the bytes, or undefined where the client says that there are none. */
async function made(model: Model, options: object): Promise<Buffer | undefined> {
  let ended: Any;
  if (model.doStart && model.doStatus) {
    const { operation } = await model.doStart(options);
    do ended = await model.doStatus({ operation });
    while (ended.status === "pending");
  } else {
    ended = await model.doGenerate?.(options);
  }
  const [file] = ended.videos ?? ended.images ?? [];
  if (file === undefined) return undefined;
  if (file.url === undefined) return Buffer.from(file);
  const answer = await fetch(file.url);
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

test.each(Object.entries(clients))("vercel's client of %s", async (name, client) => {
  if (folder === undefined) return;
  await using service = await startDeclaredService(name as DeclaredName, { isOther: true });
  const png = await samplePng();
  const image = { type: "file", mediaType: "image/png", data: new Uint8Array(png) };
  // The client of BFL looks at a refused image until its time is over. That is a number of looks.
  const quick = { pollIntervalMs: 1, pollIntervalMillis: 1, pollTimeoutMillis: 20 };
  for (const hasImage of [false, true]) {
    const model = client.model(require(`@ai-sdk/${client.from}`), service, hasImage);
    const options = {
      ...{ prompt: "a red boat", n: 1, duration: 6, aspectRatio: "16:9", resolution: "1280x720" },
      providerOptions: { [client.provider]: quick },
      ...(hasImage ? { image, files: [image] } : {}),
      ...client.options,
    };
    expect(await made(model, options)).toEqual(Buffer.from(service.file));
    const sent = JSON.stringify(service.tasks.at(-1)?.input);
    expect(sent.includes(Buffer.from(png).toString("base64"))).toBe(hasImage);
    for (const end of ["refused", "failed"] as const) {
      service.plan({ end });
      const ended = await made(model, options).catch((error: Error) => {
        // The service's answer, and no answer that the client cannot read.
        expect(String(error)).not.toMatch(/Type validation|Invalid JSON|connect/);
      });
      expect(ended).toBeUndefined();
      expect(service.tasks.at(-1)?.state).toBe(end);
    }
  }
  expect(service.paid()).toHaveLength(2);
});

test("Runway's own client", async () => {
  if (folder === undefined) return;
  await using service = await startDeclaredService("runway");
  const { default: RunwayML } = require("@runwayml/sdk");
  const { baseUrl: baseURL, key: apiKey } = service;
  const client = new RunwayML({ apiKey, baseURL, maxRetries: 0 });
  const film = { model: "gen4.5", promptText: "a red boat", ratio: "1280:720", duration: 5 };
  const ends = { done: "SUCCEEDED", refused: "FAILED", failed: "FAILED" } as const;
  for (const [end, status] of Object.entries(ends)) {
    service.plan({ end: end as keyof typeof ends });
    const { id } = await client.textToVideo.create(film);
    await client.tasks.retrieve(id);
    expect(await client.tasks.retrieve(id)).toMatchObject({ id, status });
  }
  const uri = `data:image/png;base64,${Buffer.from(await samplePng()).toString("base64")}`;
  service.plan({ pace: "held" });
  const promptImage = [{ uri, position: "first" }];
  const { id } = await client.imageToVideo.create({ ...film, promptImage });
  await client.tasks.delete(id);
  expect(service.tasks.at(-1)?.state).toBe("cancelled");
  await expect(client.tasks.retrieve(id)).rejects.toMatchObject({ status: 404 });
  expect(service.paid()).toHaveLength(1);
});
