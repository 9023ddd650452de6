import { afterEach, expect, test } from "vitest";
import type { StatusDocument } from "#common/documents/status-document.ts";
import { createLogger } from "#kit/base/logger.ts";
import { envToConfig } from "../../services/host/config.ts";
import { startRole } from "../../services/host/role.ts";
import { version } from "../../services/host/version.ts";
import { freePort } from "../support/free-port.ts";
import { describeMongo } from "../support/mongo.ts";
import { runOperatorCommand } from "../support/operator-command.ts";
import { openTcpWire } from "../support/tcp-wire.ts";
import { until } from "../support/until.ts";
import type { Variables } from "./process.ts";
import { type HostWorld, meshToken, runCommand, startHostWorld } from "./world.ts";

const started: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of started.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function own<T extends AsyncDisposable>(making: Promise<T>): Promise<T> {
  const made = await making;
  started.push(made);
  return made;
}

async function statusOf(world: HostWorld): Promise<StatusDocument & { code: number }> {
  const { code, out, err } = await runCommand(world, ["status", "--json"]);
  expect(err).toBe("");
  return { code, ...JSON.parse(out) };
}

const apiKey = "status-test-key-0123456789";

test("of one process: what runs, its stores, upstreams and catalog, and what waits", async () => {
  const world = await own(startHostWorld({ GENMESH_BOOTSTRAP_API_KEY: apiKey }));
  const found = await until("all to be well", async () => {
    const said = await statusOf(world);
    return said.ok ? said : undefined;
  });
  expect(found).toMatchObject({ code: 0, ok: true, faults: [] });
  expect(found.processes).toEqual([
    {
      ...{ role: "all", address: `http://${world.mesh.grpcAddress}`, state: "ready", version },
      ...{ reason: null, startedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
    },
  ]);
  const up = { isUp: true, roles: ["all"] };
  expect(found.stores.slice(0, 4)).toEqual([
    { name: "database", kind: "sqlite", ...up },
    { name: "blobs", kind: "file", ...up },
    { name: "queue", kind: "memory", ...up },
    { name: "disk", kind: null, ...up },
  ]);
  expect(found.catalog).toMatchObject({
    version: expect.stringMatching(/^[0-9a-f]{16}$/),
    isValid: true,
  });
  expect(found.upstreams?.map(({ name, state }) => [name, state])).toContainEqual([
    "studio",
    "unknown",
  ]);
  expect(found.holds).toEqual({ open: 0, isMore: false, oldestAt: null, overdue: 0 });
  expect(found.backlogs.map(({ subject }) => subject)).toEqual(
    expect.arrayContaining(["jobs", "webhooks", "wallets"]),
  );
  const { code, out } = await runCommand(world, ["status"]);
  expect(code).toBe(0);
  expect(out).toMatch(/^process +address +version +state +since\nall +http:/);
  expect(out).toMatch(/\ncatalog [0-9a-f]{16} is in force: \d+ models\n/);
  expect(out.endsWith("\nall is well\n")).toBe(true);
});

test("a queue that is away is named, and the exit code is 1", async () => {
  const port = await freePort();
  const world = await own(startHostWorld({ GENMESH_QUEUE_URL: `nats://127.0.0.1:${port}` }));
  const { code, ok, faults, stores } = await statusOf(world);
  expect({ code, ok, faults }).toEqual({
    ...{ code: 1, ok: false },
    faults: ["the store queue does not answer (seen by all)"],
  });
  expect(stores).toContainEqual({ name: "queue", kind: "nats", isUp: false, roles: ["all"] });
  const { out } = await runCommand(world, ["status"]);
  expect(out).toMatch(/\nqueue +nats +away +all\n/);
  expect(out.endsWith("\nwrong:\n  the store queue does not answer (seen by all)\n")).toBe(true);
});

const adminToken = "admin-token-of-the-tests";
const tokens = { GENMESH_MESH_TOKEN: meshToken, GENMESH_ADMIN_TOKEN: adminToken };

function startCatalog(env: Variables = {}) {
  const config = envToConfig({
    ...{ GENMESH_ROLE: "catalog", HOST: "127.0.0.1", PORT: "0", GRPC_PORT: "0" },
    ...{ GENMESH_OPS_PORT: "0", ...tokens, ...env },
  });
  const signal = new AbortController().signal;
  return own(startRole(config, { log: createLogger("silent"), signal }));
}

test("of a mesh every replica is asked, and a service that is away is named", async () => {
  const replicas = [await startCatalog(), await startCatalog()];
  const urls = replicas.map(({ url }) => url);
  const away = `http://127.0.0.1:${await freePort()}`;
  const env = {
    ...{ GENMESH_ADMIN_TOKEN: adminToken, GENMESH_CATALOG_URL: [...urls, urls[0]].join() },
    ...{ GENMESH_AUTH_URL: away, GENMESH_BILLING_URL: away },
    ...{ GENMESH_TEXT_URL: away, GENMESH_MEDIA_URL: away },
  };
  const { code, out } = await runOperatorCommand(["status", "--json"], env);
  const { processes, catalog, upstreams, faults } = JSON.parse(out) as StatusDocument;
  expect(code).toBe(1);
  expect(processes.map(({ role, address, state }) => [role, address, state])).toEqual([
    ["auth", away, "away"],
    ...urls.map((url) => ["catalog", url, "ready"]),
  ]);
  expect(catalog).toMatchObject({ isValid: true });
  expect(upstreams).toBeNull();
  expect(faults).toEqual([
    expect.stringMatching(/^process auth at http:\S+: does not answer \(.*ECONNREFUSED.*\)$/),
    "the upstreams are not known: text gives no answer",
    "the holds are not known: billing gives no answer",
  ]);
});

test("without the admin token nothing is told", async () => {
  const world = await own(startHostWorld());
  const asked = { GENMESH_ADMIN_TOKEN: meshToken };
  const { code, out, err } = await runCommand(world, ["status"], asked);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("the server does not accept this admin token");
});

await describeMongo("a database that goes away", (mongo) => {
  test("is named by status", { timeout: 120_000 }, async () => {
    const url = new URL(mongo.url);
    url.pathname = `/${mongo.newName()}`;
    const wire = await own(openTcpWire(url.host));
    url.host = wire.address;
    const world = await own(startHostWorld({ GENMESH_DATABASE_URL: url.href }));
    expect((await statusOf(world)).stores[0]).toMatchObject({ kind: "mongodb", isUp: true });
    wire.cut();
    const { code, faults } = await until(
      "the database to be away",
      async () => {
        const said = await statusOf(world);
        return said.stores[0]?.isUp === false ? said : undefined;
      },
      { everyMs: 100 },
    );
    expect(code).toBe(1);
    expect(faults).toContain("the store database does not answer (seen by all)");
    expect(faults[0]).toMatch(/^process all at http:\S+: .+/);
  });
});
