import { describe, expect, test } from "vitest";
import { envToConfig } from "./config.ts";
import { ConfigError } from "./env.ts";
import { roles } from "./roles.ts";

const mongo = "mongodb://u:s3cret@db.example:27017/genmesh?replicaSet=rs0";
const nats = "nats://u:s3cret@q1.example:4222,q2.example:4222";
const s3 = "s3+https://ACCESS:s3cret@blobs.example/genmesh?region=eu-1";

/** The variables that a mesh sets for every role. */
const mesh = {
  GENMESH_DATABASE_URL: mongo,
  GENMESH_QUEUE_URL: nats,
  GENMESH_BLOBS_URL: s3,
  GENMESH_MESH_TOKEN: "m".repeat(16),
  GENMESH_AUTH_URL: "http://auth:8080",
  GENMESH_BILLING_URL: "http://billing:8080",
  GENMESH_CATALOG_URL: "http://catalog:8080",
  GENMESH_TEXT_URL: "http://text:8080",
  GENMESH_MEDIA_URL: "https://media-1:8080,https://media-2:8080",
};
const meshRoles = roles.filter((role) => role !== "all");

function faultOf(env: Record<string, string | undefined>): string {
  try {
    envToConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return "";
}

describe("a role of a mesh", () => {
  test.each(meshRoles)("%s takes what the whole mesh sets", (role) => {
    const config = envToConfig({ ...mesh, GENMESH_ROLE: role });
    expect(config).toMatchObject({ role, ports: { http: { host: "0.0.0.0", port: 8080 } } });
  });

  test("only roles that seal keys or call upstreams get the secret of stored keys", () => {
    const env = { ...mesh, GENMESH_SECRETS_KEY: "A".repeat(43) };
    const withIt = roles.filter((role) => envToConfig(env, { role }).sealSecrets !== undefined);
    expect(withIt).toEqual(["all", "catalog", "text", "media", "media-worker"]);
  });

  test("--role chooses it", () => {
    expect(envToConfig(mesh, { role: "auth" }).role).toBe("auth");
  });

  test.each([
    ["gateway", ["BLOBS", "MESH_TOKEN", "AUTH", "BILLING", "CATALOG", "TEXT", "MEDIA"]],
    ["auth", ["DATABASE", "MESH_TOKEN"]],
    ["billing", ["DATABASE", "MESH_TOKEN", "TEXT", "MEDIA"]],
    ["catalog", ["MESH_TOKEN"]],
    ["text", ["DATABASE", "MESH_TOKEN", "BILLING", "CATALOG", "MEDIA"]],
    ["media", ["DATABASE", "QUEUE", "BLOBS", "MESH_TOKEN", "BILLING", "CATALOG"]],
    ["media-worker", ["DATABASE", "QUEUE", "BLOBS", "MESH_TOKEN", "BILLING", "CATALOG"]],
  ])("%s names each variable that it needs, and misses no other", (role, needed) => {
    const missed = Object.keys(mesh).filter((name) => {
      const fault = faultOf({ ...mesh, GENMESH_ROLE: role, [name]: undefined });
      if (fault !== "")
        expect(fault).toMatch(new RegExp(`^${name} must be set for role ${role}: `));
      return fault !== "";
    });
    const names = needed.map((one) => (one === "MESH_TOKEN" ? one : `${one}_URL`));
    expect(missed.sort()).toEqual(names.map((one) => `GENMESH_${one}`).sort());
  });

  test.each([
    ["GENMESH_DATABASE_URL", "sqlite:/data/db"],
    ["GENMESH_QUEUE_URL", "memory:"],
    ["GENMESH_BLOBS_URL", "file:/data/blobs"],
  ])("%s=%s is for role all alone", (name, value) => {
    const fault = faultOf({ ...mesh, GENMESH_ROLE: "media", [name]: value });
    expect(fault).toMatch(new RegExp(`^${name} must be .* serves role all only$`));
    expect(faultOf({ [name]: value })).toBe("");
  });

  test("what it does not need it does not read", () => {
    const config = envToConfig({
      GENMESH_ROLE: "catalog",
      GENMESH_MESH_TOKEN: mesh.GENMESH_MESH_TOKEN,
      GENMESH_DATABASE_URL: "sqlite:x",
      GENMESH_AUTH_URL: "nowhere",
    });
    expect(config).toMatchObject({ database: undefined, queue: undefined, peers: {} });
  });

  test("only a role with methods has a gRPC port", () => {
    const grpc = (role: string) => envToConfig({ ...mesh, GENMESH_ROLE: role }).ports.grpc;
    expect(grpc("text")).toEqual({ host: "0.0.0.0", port: 9090 });
    expect(grpc("gateway")).toBeUndefined();
    expect(grpc("media-worker")).toBeUndefined();
  });
});

describe("URLs of a mesh", () => {
  test("are taken by role all too", () => {
    expect(envToConfig(mesh)).toMatchObject({
      role: "all",
      database: { kind: "mongodb", url: mongo },
      queue: { kind: "nats", url: nats, replicas: 1, name: "genmesh" },
      blobs: { kind: "s3", url: s3 },
      peers: {},
    });
  });

  test.each([
    ["GENMESH_DATABASE_URL", "mongodb+srv://db.example/genmesh"],
    ["GENMESH_QUEUE_URL", "tls://TOKEN@q.example:4222"],
    ["GENMESH_BLOBS_URL", "s3+http://A:B%2Fc@127.0.0.1:9000/bucket"],
  ])("%s=%s", (name, value) => {
    expect(faultOf({ ...mesh, GENMESH_ROLE: "media", [name]: value })).toBe("");
  });

  test.each([
    ["GENMESH_DATABASE_URL", "mongodb://u:s3cret@db.example/", "mongodb://HOST/DATABASE"],
    ["GENMESH_DATABASE_URL", "postgres://u:s3cret@db.example/x", "mongodb://HOST/DATABASE"],
    ["GENMESH_QUEUE_URL", "nats://u:s3cret@q.example:x", "HOST:PORT"],
    ["GENMESH_QUEUE_URL", "kafka://u:s3cret@q.example", "nats://HOST:PORT"],
    ["GENMESH_BLOBS_URL", "s3+https://u:s3cret@blobs.example", "BUCKET"],
    ["GENMESH_BLOBS_URL", "s3://u:s3cret@blobs.example/b", "s3+http://ACCESS:SECRET@HOST"],
    ["GENMESH_NATS_NAME", "a b", "1 to 64 of"],
    ["GENMESH_NATS_REPLICAS", "6", "from 1 to 5"],
    ["GENMESH_BILLING_URL", "billing:8080", "http://HOST:PORT"],
    ["GENMESH_BILLING_URL", "http://billing:8080/v1", "http://HOST:PORT"],
    ["GENMESH_BILLING_URL", "http://u:s3cret@billing:8080", "http://HOST:PORT"],
    ["GENMESH_BILLING_URL", "http://billing:8080,ftp://b", "http://HOST:PORT"],
  ])("%s=%s is refused, and not repeated", (name, value, accepts) => {
    const fault = faultOf({ ...mesh, GENMESH_ROLE: "media", [name]: value });
    expect(fault).toMatch(new RegExp(`^${name} `));
    expect(fault).toContain(accepts);
    expect(fault).not.toContain("s3cret");
  });

  test("a peer may have several", () => {
    const { peers } = envToConfig({ ...mesh, GENMESH_ROLE: "billing" });
    expect(peers).toEqual({
      text: ["http://text:8080"],
      media: ["https://media-1:8080", "https://media-2:8080"],
    });
  });
});

describe("TLS", () => {
  const own = { GENMESH_TLS_CERT_FILE: "/tls/crt", GENMESH_TLS_KEY_FILE: "/tls/key" };

  test("is of the process's own certificate", () => {
    const config = envToConfig(own);
    expect(config.tls).toEqual({
      own: { certFile: "/tls/crt", keyFile: "/tls/key" },
      caFile: undefined,
      clientAuth: false,
    });
  });

  test("authorities alone are for calls to peers", () => {
    const config = envToConfig({ GENMESH_TLS_CA_FILE: "/tls/ca" });
    expect(config.tls).toMatchObject({ own: undefined, caFile: "/tls/ca" });
  });

  test.each([
    [{ GENMESH_TLS_CERT_FILE: "/c" }, "GENMESH_TLS_KEY_FILE"],
    [{ GENMESH_TLS_KEY_FILE: "/k" }, "GENMESH_TLS_CERT_FILE"],
    [{ ...own, GENMESH_TLS_CLIENT_AUTH: "1" }, "GENMESH_TLS_CLIENT_AUTH"],
  ])("%o names %s", (env, name) => {
    expect(faultOf(env)).toMatch(new RegExp(`^${name} `));
  });
});
