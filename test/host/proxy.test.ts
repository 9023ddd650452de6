import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { noise } from "#kit/images/samples.fixture.ts";
import { testCatalog, upstreamKeys } from "../e2e/catalog.ts";
import { openSocket } from "../support/caller-socket.ts";
import { certificateFolder, noCertificates } from "../support/certificates.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { tempFolder } from "./process.ts";
import { caddy, nginx, publicName, type RunningProxy } from "./proxy.ts";
import { type HostWorld, startHostWorld } from "./world.ts";

const key = "a-caller-behind-a-proxy-0123456789";
const mib = 1024 * 1024;

for (const { program, isThere, start } of [nginx, caddy]) {
  describe.skipIf(!isThere || noCertificates !== undefined)(`behind ${program}`, () => {
    const stack = new AsyncDisposableStack();
    afterAll(() => stack.disposeAsync());
    let upstream: ScriptedUpstream;
    let world: HostWorld;
    let proxy: RunningProxy;
    let ca: string;
    /** Keeps its connections to the proxy. */
    let kept: Agent;

    beforeAll(async () => {
      upstream = stack.use(await startScriptedUpstream());
      const { path } = stack.use(await tempFolder());
      const catalog = join(path, "catalog.json");
      const main = upstream.baseUrl;
      await writeFile(catalog, JSON.stringify(testCatalog({ main, backup: main, nowhere: main })));
      world = stack.use(
        await startHostWorld({
          ...upstreamKeys,
          GENMESH_CATALOG: catalog,
          GENMESH_BOOTSTRAP_API_KEY: key,
          GENMESH_TRUST_PROXY: "127.0.0.1",
        }),
      );
      const authority = await stack.use(await certificateFolder()).authority();
      ca = authority.ca;
      const pair = await authority.issue(publicName);
      const folder = join(path, "proxy");
      const [certFile, keyFile] = [join(path, "cert.pem"), join(path, "key.pem")];
      await mkdir(folder);
      await writeFile(certFile, pair.cert);
      await writeFile(keyFile, pair.key);
      const target = new URL(world.mesh.baseUrl).host;
      proxy = stack.use(await start({ target, certFile, keyFile, folder }));
      kept = new Agent({ keepAlive: true });
      stack.defer(() => kept.destroy());
    });

    /** Sends a request to the proxy, from an address of the loopback. Resolves with the head of the answer. */
    async function ask(
      path: string,
      { body, headers = {}, from = "127.0.0.1" }: Asked = {},
    ): Promise<IncomingMessage> {
      const asked = request({
        ...{ host: "127.0.0.1", port: proxy.port, servername: publicName, ca, agent: kept, path },
        localAddress: from,
        method: body === undefined ? "GET" : "POST",
        headers: {
          host: publicName,
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          ...headers,
        },
      });
      // An answer may come before the body was sent.
      asked.on("error", () => {});
      asked.end(body);
      const [answer] = await once(asked, "response");
      return answer;
    }

    const jsonOf = async (answer: IncomingMessage) => JSON.parse(await text(answer));
    const prompt = (fields = {}) => JSON.stringify({ model: "scripted", input: "Hi", ...fields });

    test("JSON, with the caller's id and the public address", async () => {
      const answer = await ask("/v1/responses", {
        body: prompt(),
        headers: { "x-request-id": "mine-1" },
      });
      expect(answer.statusCode).toBe(200);
      expect(answer.headers).toMatchObject({
        "x-request-id": expect.stringMatching(/^req_/),
        "x-client-request-id": "mine-1",
      });
      expect(await jsonOf(answer)).toMatchObject({ status: "completed" });
      const job = await ask("/v1/images/generations", {
        body: JSON.stringify({ model: "image-1", prompt: "a boat" }),
      });
      const { statusUrl } = await jsonOf(job);
      expect(statusUrl).toMatch(`https://${publicName}/v1/images/generations/`);
    });

    test("the first events of a stream before its last is made", async () => {
      const rest = Promise.withResolvers<void>();
      upstream.next({ kind: "ok", deltas: ["a", "b"], restAfter: rest.promise });
      const answer = await ask("/v1/responses", { body: prompt({ stream: true }) });
      expect(answer.headers["content-type"]).toMatch("text/event-stream");
      let said = "";
      for await (const chunk of answer) {
        said += chunk;
        // Only what has come through lets the upstream go on.
        if (said.includes("response.output_text.delta")) rest.resolve();
      }
      expect(said).toContain("response.completed");
    });

    test("responses over a WebSocket", async () => {
      using socket = await openSocket(`https://127.0.0.1:${proxy.port}/v1`, key, {
        ...{ ca, servername: publicName, headers: { host: publicName } },
      });
      const frames = await socket.create({ model: "scripted", input: "Hi" });
      expect(frames.at(-1)).toMatchObject({ type: "response.completed" });
    });

    test("a large upload, and its download", async () => {
      const png = await noise(2_400, 2_000).png({ compressionLevel: 0 }).toBuffer();
      expect(png.length).toBeGreaterThan(10 * mib);
      const form = new FormData();
      form.set("purpose", "vision");
      form.set("file", new Blob([png]), "noise.png");
      const encoded = new Response(form);
      const answer = await ask("/v1/files", {
        body: Buffer.from(await encoded.arrayBuffer()),
        headers: { "content-type": encoded.headers.get("content-type") ?? "" },
      });
      expect(answer.statusCode).toBe(200);
      const { id, bytes } = await jsonOf(answer);
      expect(bytes).toBe(png.length);
      const content = await ask(`/v1/files/${id}/content`);
      expect(Buffer.concat(await content.toArray()).equals(png)).toBe(true);
    });

    test("a body that is too large gets genmesh's own answer", async () => {
      const answer = await ask("/v1/images/generations", { body: Buffer.alloc(33 * mib, " ") });
      expect(answer.statusCode).toBe(413);
      expect(await jsonOf(answer)).toMatchObject({ error: { code: "payload_too_large" } });
    });

    test("callers have the addresses that the proxy sees, whatever they say of themselves", async () => {
      const signIn = (from: string, forged: string) =>
        ask("/console/api/session", {
          body: JSON.stringify({ secret: "a wrong one" }),
          from,
          headers: {
            ...{ origin: `https://${publicName}`, "sec-fetch-site": "same-origin" },
            "x-forwarded-for": forged,
          },
        }).then((answer) => {
          answer.resume();
          return answer.statusCode;
        });
      for (let n = 0; n < 10; n++) expect(await signIn("127.0.0.2", `192.0.2.${n}`)).toBe(401);
      expect(await signIn("127.0.0.2", "192.0.2.99")).toBe(429);
      expect(await signIn("127.0.0.3", "192.0.2.99")).toBe(401);
    });

    test("a service that stops does not wait for the proxy's idle connections", async () => {
      (await ask("/v1/models")).resume();
      await world.mesh.drain(new AbortController().signal);
      expect((await ask("/v1/models")).statusCode).toBe(502);
    });
  });
}

interface Asked {
  body?: string | Buffer;
  headers?: Record<string, string>;
  from?: string;
}
