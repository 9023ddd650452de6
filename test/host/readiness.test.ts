import { afterEach, describe, expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { envToConfig } from "../../services/host/config.ts";
import { type RoleProcess, startRole } from "../../services/host/role.ts";
import { describeS3 } from "../contract/blobs.s3.world.ts";
import { certificateFolder, mountSecret, noCertificates } from "../support/certificates.ts";
import { describeMongo } from "../support/mongo.ts";
import { openTcpWire, type TcpWire } from "../support/tcp-wire.ts";
import { until } from "../support/until.ts";
import type { Variables } from "./process.ts";
import { startHostWorld } from "./world.ts";

const apiKey = "readiness-test-key-0123456789";
const started: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of started.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function own<T extends AsyncDisposable>(making: Promise<T>): Promise<T> {
  const made = await making;
  started.push(made);
  return made;
}

function startAt(env: Variables): Promise<RoleProcess> {
  const config = envToConfig({
    HOST: "127.0.0.1",
    PORT: "0",
    GRPC_PORT: "0",
    GENMESH_OPS_PORT: "0",
    GENMESH_MESH_TOKEN: "mesh-token-of-the-tests",
    ...env,
  });
  const signal = new AbortController().signal;
  return own(startRole(config, { log: createLogger("silent"), signal }));
}

/** The same store, through a connection that a test can cut. */
async function laid(url: URL): Promise<{ url: string; wire: TcpWire }> {
  const wire = await own(openTcpWire(url.host));
  const laidUrl = new URL(url);
  laidUrl.host = wire.address;
  return { url: laidUrl.href, wire };
}

const said = async (url: string | URL) => {
  const answer = await fetch(url);
  return `${answer.status} ${(await answer.text()).split("\n")[0]}`;
};
/** Longer than the time until a store counts as away, even on a busy machine. */
const patience = { withinMs: 60_000, everyMs: 100 };

await describeMongo("a database that goes away", (mongo) => {
  const newDatabase = () => {
    const url = new URL(mongo.url);
    url.pathname = `/${mongo.newName()}`;
    return laid(url);
  };

  test.for(["cut", "hold"] as const)(
    "%s: the edge is alive and not ready; requests are 503 with Retry-After; then all is well again",
    { timeout: 240_000 },
    async (fault) => {
      const { url, wire } = await newDatabase();
      const { mesh } = await own(
        startHostWorld({ GENMESH_DATABASE_URL: url, GENMESH_BOOTSTRAP_API_KEY: apiKey }),
      );
      const at = (path: string) => new URL(path, mesh.baseUrl);
      const ask = () =>
        fetch(at("/v1/responses"), {
          method: "POST",
          headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "chat-1", input: "Hi" }),
        });
      expect((await ask()).status).toBe(200);
      expect(await said(at("/readyz"))).toBe("200 ready");
      wire[fault]();
      const refused = await ask();
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([
        503,
        expect.stringMatching(/^\d+$/),
      ]);
      expect(await refused.json()).toMatchObject({ error: { code: "service_unavailable" } });
      await until("it tells", async () => (await said(at("/readyz"))).startsWith("503"), patience);
      expect(await said(at("/healthz"))).toBe("200 ok");
      wire.mend();
      await until("it is ready", async () => (await said(at("/readyz"))) === "200 ready", patience);
      await until("it serves", async () => (await ask()).status === 200, patience);
    },
  );

  test("a role tells which of its stores it is, and answers on", async () => {
    const { url, wire } = await newDatabase();
    const role = await startAt({
      GENMESH_ROLE: "billing",
      GENMESH_DATABASE_URL: url,
      GENMESH_TEXT_URL: "http://127.0.0.1:1",
      GENMESH_MEDIA_URL: "http://127.0.0.1:1",
    });
    expect(await said(`${role.url}/readyz`)).toBe("200 ready");
    wire.cut();
    const away = "503 the database does not answer";
    await until("it tells", async () => (await said(`${role.url}/readyz`)) === away, patience);
    expect(await said(`${role.url}/healthz`)).toBe("200 ok");
    wire.mend();
    await until("it is ready", async () => (await said(`${role.url}/readyz`)) === "200 ready");
  });
});

await describeS3("a store of files that goes away", (s3) => {
  test("text is served on, and readiness stays; the metric tells", {
    timeout: 240_000,
  }, async () => {
    const { url, wire } = await laid(new URL(s3.newUrl()));
    const { mesh } = await own(startHostWorld({ GENMESH_BLOBS_URL: url }));
    wire.cut();
    const metrics = new URL("/metrics", mesh.opsUrl);
    await until(
      "the metric",
      async () =>
        /^genmesh_store_up\{store="blobs"\} 0$/m.test(await (await fetch(metrics)).text()),
      patience,
    );
    expect(await said(new URL("/readyz", mesh.baseUrl))).toBe("200 ready");
  });
});

describe.skipIf(noCertificates)(`with certificates ${noCertificates ?? ""}`, () => {
  test("the public port answers health over TLS, the operations port health and metrics plainly", async () => {
    await using folder = await certificateFolder();
    const authority = await folder.authority();
    const pair = await authority.issue("127.0.0.1");
    const { files } = await mountSecret(folder, { ...pair, ca: authority.ca });
    const { mesh } = await own(
      startHostWorld({
        GENMESH_TLS_CERT_FILE: files.certFile,
        GENMESH_TLS_KEY_FILE: files.keyFile,
      }),
    );
    const { Agent, fetch: fetchBy } = await import("undici");
    const dispatcher = new Agent({ connect: { ca: authority.ca } });
    started.push({ [Symbol.asyncDispose]: () => dispatcher.destroy() });
    const statusOf = async (path: string) =>
      (await fetchBy(new URL(path, mesh.baseUrl), { dispatcher })).status;
    for (const path of ["/healthz", "/readyz"]) {
      expect(await statusOf(path)).toBe(200);
      expect((await fetch(new URL(path, mesh.opsUrl))).status).toBe(200);
    }
    expect(await statusOf("/metrics")).toBe(404);
    expect((await fetch(new URL("/metrics", mesh.opsUrl))).status).toBe(200);
    expect(await statusOf("/v1/models")).toBe(401);
  });
});
