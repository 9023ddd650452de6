import { describe, expect, test } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import { envToConfig } from "../config.ts";
import { ConfigError } from "../env.ts";
import { readMeshArguments } from "./options.ts";
import { meshRoles, planMesh } from "./plan.ts";

const stores = {
  GENMESH_DATABASE_URL: "mongodb://db/genmesh",
  GENMESH_QUEUE_URL: "nats://queue:4222",
  GENMESH_BLOBS_URL: "s3+http://A:S@blobs:9000/genmesh",
  GENMESH_MESH_TOKEN: "m".repeat(16),
  GENMESH_DATA_DIR: "/data",
  MODEL_KEY: "k",
};

async function plan(words: string[], { tls = false } = {}) {
  const first = await freePort();
  return planMesh({
    replicas: readMeshArguments(words).replicas,
    env: stores,
    host: "127.0.0.1",
    tls,
    firstPorts: { public: first, internal: first + 1 },
  });
}

describe("a planned mesh", () => {
  test("has two of each role, each with ports of its own, and is a configuration each can use", async () => {
    const processes = await plan([]);
    expect(processes).toHaveLength(2 * meshRoles.length);
    const ports = processes
      .flatMap(({ env }) => [env.PORT, env.GRPC_PORT, env.GENMESH_OPS_PORT])
      .filter(Boolean);
    expect(new Set(ports).size).toBe(ports.length);
    for (const { env, role, url } of processes) {
      const config = envToConfig(env);
      expect(config).toMatchObject({ role, scratchDir: undefined });
      expect(url).toBe(`http://127.0.0.1:${config.ports.http.port}`);
      expect(config.secret("MODEL_KEY")).toBe("k");
    }
  });

  test("tells everybody of all replicas", async () => {
    const processes = await plan(["--replicas", "1", "--replicas", "billing=3"]);
    const billing = processes.filter(({ role }) => role === "billing").map(({ url }) => url);
    expect(billing).toHaveLength(3);
    for (const { env } of processes) expect(env.GENMESH_BILLING_URL).toBe(billing.join(","));
  });

  test("with TLS speaks it to peers, but for metrics and health", async () => {
    const processes = await plan(["--replicas", "1"], { tls: true });
    for (const { env, url, opsUrl } of processes) {
      expect(url).toMatch(/^https:/);
      expect(opsUrl).toBe(`http://127.0.0.1:${env.GENMESH_OPS_PORT}`);
    }
  });
});

describe("its words", () => {
  test("the count of one role beats that of all, in any order", () => {
    const { replicas } = readMeshArguments(["--replicas", "media-worker=3,4", "--replicas=text=1"]);
    expect(replicas).toMatchObject({ "media-worker": 3, text: 1, gateway: 4 });
  });

  test.each([["0"], ["21"], ["cook=2"], ["text="], ["all=x"], ["two"]])(
    "--replicas %s is refused",
    (word) => {
      expect(() => readMeshArguments(["--replicas", word])).toThrow(ConfigError);
    },
  );

  test.each([["65536"], ["x"], ["-1"]])("--internal-port %s is refused", (word) => {
    expect(() => readMeshArguments([`--internal-port=${word}`])).toThrow(ConfigError);
  });
});
