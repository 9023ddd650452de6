import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { envToConfig, envToOperatorConfig } from "./config.ts";
import { ConfigError } from "./env.ts";

describe("defaults", () => {
  test("an empty environment runs the whole mesh on the loopback", () => {
    const config = envToConfig({});
    expect(config).toMatchObject({
      role: "all",
      ports: {
        http: { host: "127.0.0.1", port: 8080 },
        grpc: { host: "127.0.0.1", port: 9090 },
        ops: { host: "127.0.0.1", port: 9091 },
      },
      publicUrl: undefined,
      trustProxy: [],
      corsOrigins: [],
      tls: undefined,
      peers: {},
      queue: { kind: "memory" },
      bootstrap: { apiKey: undefined, usdMicros: 25_000_000n, credits: 10_000n },
      references: { allowPrivate: false },
      retentionDays: 30,
      drainMs: 25_000,
      logLevel: "info",
      tokens: { mesh: [], admin: undefined },
    });
    expect(config.dataDir).toMatch(/\/\.genmesh$/);
    expect(config.database).toEqual({
      kind: "sqlite",
      file: `${config.dataDir}/genmesh.sqlite`,
    });
    expect(config.blobs).toEqual({ kind: "file", folder: `${config.dataDir}/blobs` });
    expect(config.catalog).toEqual({
      file: expect.stringMatching(/\/deploy\/catalog\.yaml$/),
      isStored: true,
    });
  });

  test("an empty variable counts as not set", () => {
    expect(envToConfig({ PORT: "", HOST: " ", GENMESH_DRAIN_MS: "" })).toMatchObject({
      ports: { http: { host: "127.0.0.1", port: 8080 } },
      drainMs: 25_000,
    });
  });
});

describe("every variable is taken", () => {
  test.each<[string, string, object]>([
    ["GENMESH_ROLE", "all", { role: "all" }],
    ["PORT", "0", { ports: { http: { port: 0 } } }],
    [
      "HOST",
      "0.0.0.0",
      {
        ports: {
          http: { host: "0.0.0.0" },
          grpc: { host: "127.0.0.1" },
          ops: { host: "127.0.0.1" },
        },
      },
    ],
    ["GENMESH_OPS_PORT", "9500", { ports: { ops: { host: "127.0.0.1", port: 9_500 } } }],
    ["HOST", "::1", { ports: { http: { host: "::1" } } }],
    ["GRPC_PORT", "65535", { ports: { grpc: { port: 65_535 } } }],
    ["GENMESH_DATA_DIR", "/data", { dataDir: "/data", blobs: { folder: "/data/blobs" } }],
    ["GENMESH_DATABASE_URL", "sqlite:/a/b.db", { database: { kind: "sqlite", file: "/a/b.db" } }],
    ["GENMESH_DATABASE_URL", "sqlite:///a/b.db", { database: { file: "/a/b.db" } }],
    ["GENMESH_BLOBS_URL", "file:/media", { blobs: { kind: "file", folder: "/media" } }],
    ["GENMESH_CATALOG", "/c.yaml", { catalog: { file: "/c.yaml", isStored: false } }],
    ["GENMESH_CATALOG", "store:/c.yaml", { catalog: { file: "/c.yaml", isStored: true } }],
    [
      "GENMESH_CATALOG",
      "store:",
      { catalog: { file: expect.stringMatching(/\/deploy\/catalog\.yaml$/), isStored: true } },
    ],
    ["GENMESH_BOOTSTRAP_API_KEY", "A".repeat(20), { bootstrap: { apiKey: "A".repeat(20) } }],
    ["GENMESH_BOOTSTRAP_USD_MICROS", "0", { bootstrap: { usdMicros: 0n } }],
    ["GENMESH_BOOTSTRAP_CREDITS", "5", { bootstrap: { credits: 5n } }],
    ["GENMESH_ALLOW_PRIVATE_REFERENCES", "1", { references: { allowPrivate: true } }],
    ["GENMESH_CORS_ORIGINS", "*", { corsOrigins: ["*"] }],
    [
      "GENMESH_CORS_ORIGINS",
      "https://app.example.com, http://localhost:3000,app://desk",
      { corsOrigins: ["https://app.example.com", "http://localhost:3000", "app://desk"] },
    ],
    ["NO_COLOR", "1", { logColours: false }],
    ["TERM", "dumb", { logColours: false }],
    ["TERM", "xterm", { logColours: true }],
    ["GENMESH_DRAIN_MS", "0", { drainMs: 0 }],
    ["GENMESH_RETENTION_DAYS", "0", { retentionDays: 0 }],
    ["GENMESH_LOG_LEVEL", "warn", { logLevel: "warn" }],
    ["GENMESH_PEER_FRAMES", "off", { frames: false }],
    ["GENMESH_WEBSOCKETS", "off", { webSockets: false }],
    ["GENMESH_WS_CONNECTIONS", "8192", { webSockets: { most: 8_192, inFlight: 1 } }],
    ["GENMESH_WS_IN_FLIGHT", "16", { webSockets: { most: 4_096, inFlight: 16 } }],
    ["GENMESH_PUBLIC_URL", "https://a.example/gen/", { publicUrl: "https://a.example/gen" }],
    ["GENMESH_TRUST_PROXY", "10.0.0.0/8, ::1", { trustProxy: ["10.0.0.0/8", "::1"] }],
    [
      "GENMESH_MESH_TOKEN",
      `${"n".repeat(16)},${"o".repeat(16)}`,
      { tokens: { mesh: ["n".repeat(16), "o".repeat(16)] } },
    ],
    ["GENMESH_ADMIN_TOKEN", "t".repeat(16), { tokens: { admin: "t".repeat(16) } }],
    ["GENMESH_SECRETS_KEY", `${"A".repeat(43)}=`, { sealSecrets: [Buffer.alloc(32)] }],
    [
      "GENMESH_SECRETS_KEY",
      `${"_".repeat(42)}8, ${"A".repeat(43)}`,
      { sealSecrets: [Buffer.alloc(32, 0xff), Buffer.alloc(32)] },
    ],
    ["GENMESH_SECRETS_KEY", "off", { sealSecrets: "off" }],
  ])("%s=%s", (name, value, expected) => {
    expect(envToConfig({ [name]: value })).toMatchObject(expected);
  });

  test("--role is GENMESH_ROLE, and wins", () => {
    expect(() => envToConfig({ GENMESH_ROLE: "all" }, { role: "cook" })).toThrow(/^GENMESH_ROLE /);
  });

  test("a key that the catalog names is read by its name", () => {
    expect(envToConfig({ MY_KEY: "k" }).secret("MY_KEY")).toBe("k");
  });

  test("the installation's own secrets are no upstream's keys", () => {
    const env = {
      GENMESH_ADMIN_TOKEN: "t".repeat(16),
      GENMESH_MESH_TOKEN: "m".repeat(16),
      GENMESH_SECRETS_KEY: "A".repeat(43),
    };
    for (const name of Object.keys(env)) expect(envToConfig(env).secret(name)).toBeUndefined();
  });

  test("a key whose name is a path is read from that file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "genmesh-keys-"));
    const file = join(folder, "key");
    writeFileSync(file, "k\n");
    expect(await envToConfig({ [file]: "of a variable" }).secret(file)).toBe("k");
    rmSync(folder, { recursive: true });
  });
});

describe("a value that makes no sense is refused with its variable and what that accepts", () => {
  test.each<[string, string, RegExp]>([
    ["GENMESH_ROLE", "cook", /one of: all/],
    ["PORT", "http", /whole number from 0 to 65535/],
    ["PORT", "65536", /whole number from 0 to 65535/],
    ["PORT", "-1", /whole number/],
    ["PORT", "80.5", /whole number/],
    ["PORT", "0x50", /whole number/],
    ["HOST", "no host", /an address or a host name/],
    ["HOST", "http://localhost", /an address or a host name/],
    ["GRPC_PORT", "grpc", /whole number from 0 to 65535/],
    ["GRPC_PORT", "8080", /another port than PORT/],
    ...[
      "null",
      "https://app.example.com/",
      "https://App.example.com",
      "https://app.example.com:443",
      "https://*.example.com",
      "https://user@app.example.com",
      "app.example.com",
      "*,https://app.example.com",
    ].map((value): [string, string, RegExp] => ["GENMESH_CORS_ORIGINS", value, /as browsers say/]),
    ["GENMESH_OPS_PORT", "8080", /another port than PORT/],
    ["GENMESH_OPS_PORT", "9090", /another port than GRPC_PORT/],
    ["GENMESH_DATABASE_URL", "postgres://h/d", /sqlite:FILE/],
    ["GENMESH_DATABASE_URL", "sqlite:", /sqlite:FILE/],
    ["GENMESH_BLOBS_URL", "s3://bucket", /file:FOLDER/],
    ["GENMESH_BLOBS_URL", "file:", /file:FOLDER/],
    ["GENMESH_BOOTSTRAP_API_KEY", "short", /20 to 200 characters of/],
    ["GENMESH_BOOTSTRAP_API_KEY", `${"k".repeat(20)} `.concat("k"), /20 to 200 characters of/],
    ["GENMESH_BOOTSTRAP_API_KEY", "k".repeat(201), /20 to 200 characters of/],
    ["GENMESH_BOOTSTRAP_USD_MICROS", "25.5", /whole number of up to 15 digits/],
    ["GENMESH_BOOTSTRAP_USD_MICROS", "-5", /whole number/],
    ["GENMESH_BOOTSTRAP_CREDITS", "many", /whole number/],
    ["GENMESH_ALLOW_PRIVATE_REFERENCES", "perhaps", /1 or 0/],
    ["GENMESH_DRAIN_MS", "soon", /whole number from 0 to 3600000/],
    ["GENMESH_RETENTION_DAYS", "-1", /whole number from 0 to 36500/],
    ["GENMESH_LOG_LEVEL", "loud", /one of: trace, debug, info, warn, error, silent/],
    ["GENMESH_PUBLIC_URL", "api.example", /absolute http or https URL/],
    ["GENMESH_PUBLIC_URL", "ftp://api.example", /absolute http or https URL/],
    ["GENMESH_PUBLIC_URL", "https://api.example/?q=1", /absolute http or https URL/],
    ["GENMESH_TRUST_PROXY", "everyone", /addresses or networks/],
    ["GENMESH_TRUST_PROXY", "10.0.0.0/33", /addresses or networks/],
    ["GENMESH_MESH_TOKEN", ",", /16 to 256 visible ASCII characters/],
    ["GENMESH_MESH_TOKEN", "short", /16 to 256 visible ASCII characters/],
    ...["short", "A".repeat(44), `${"A".repeat(43)},`, "!".repeat(43)].map(
      (value): [string, string, RegExp] => ["GENMESH_SECRETS_KEY", value, /base64 of 32 bytes/],
    ),
    ["GENMESH_SECRETS_KEY_FILE", "/nowhere", /a file that can be read/],
    ["GENMESH_ADMIN_TOKEN", "with a blank in it", /16 to 256 visible ASCII characters/],
  ])("%s=%s", (name, value, accepts) => {
    const fault = faultOf(() => envToConfig({ [name]: value }));
    expect(fault).toMatch(new RegExp(`^${name} `));
    expect(fault).toMatch(accepts);
    expect(fault).not.toContain("\n");
  });

  test.each([
    ["GENMESH_BOOTSTRAP_API_KEY", "s3cret!"],
    ["GENMESH_ADMIN_TOKEN", "s3cret"],
    ["GENMESH_MESH_TOKEN", "s3cret"],
    ["GENMESH_SECRETS_KEY", "s3cret"],
    ["GENMESH_DATABASE_URL", "mysql://user:s3cret@db/x"],
    ["GENMESH_BLOBS_URL", "s3+https://user:s3cret@host"],
  ])("%s is not repeated, for it may hold a secret", (name, value) => {
    expect(faultOf(() => envToConfig({ [name]: value }))).not.toContain("s3cret");
  });
});

test("the operator command refuses a bad token likewise", () => {
  expect(() => envToOperatorConfig({ GENMESH_ADMIN_TOKEN: "x" })).toThrow(ConfigError);
});

function faultOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error("it was taken");
}
