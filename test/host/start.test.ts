import { once } from "node:events";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { envToConfig } from "../../services/host/config.ts";
import { ConfigError } from "../../services/host/env.ts";
import { startRoleAll } from "../../services/host/role-all.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { type RunningMesh, runHost, startRunning, tempFolder } from "./process.ts";

const made: AsyncDisposable[] = [];
afterAll(async () => {
  for (const one of made.reverse()) await one[Symbol.asyncDispose]();
});

describe("a process on a new data directory", () => {
  let mesh: RunningMesh;
  let dataDir: string;
  beforeAll(async () => {
    const folder = await tempFolder();
    made.push(folder);
    dataDir = join(folder.path, "not", "made", "yet");
    mesh = await startRunning({ GENMESH_DATA_DIR: dataDir });
    made.push(mesh);
  });

  test("says its base URL and its new key, and where the console is, and nothing else there", async () => {
    expect(mesh.stdout()).toMatch(
      /^genmesh is ready: (http:\/\/127\.0\.0\.1:\d+)\/v1 {2}key: gm_[A-Za-z0-9]{40}\nconsole: \1\/console\/\n$/,
    );
  });

  test("logs JSON lines on standard error, none with the key", () => {
    const lines = mesh.stderr().trim().split("\n");
    expect(lines.every((line) => typeof JSON.parse(line).time === "string")).toBe(true);
    expect(mesh.stderr()).not.toContain(mesh.bannerKey);
  });

  test("follows the catalog once, for all of its services", async () => {
    // The last line of a start, which may come after the banner.
    await until("the start's log", () => mesh.stderr().includes('"health and metrics"'));
    const told = mesh.stderr().match(/"catalog snapshot in force"/g);
    expect(told).toHaveLength(1);
  });

  test.each([
    ["/readyz", "ready\n", "text/plain"],
    ["/healthz", "ok\n", "text/plain"],
  ])("%s needs no key", async (path, text, type) => {
    const answer = await fetch(mesh.origin + path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toContain(type);
    expect(await answer.text()).toContain(text);
  });

  test("the operational paths sit outside /v1", async () => {
    for (const path of ["/readyz", "/healthz", "/metrics"]) {
      expect((await fetch(mesh.baseUrl + path)).status).toBe(401);
    }
  });

  test("metrics are on the operations port alone, with health beside them", async () => {
    const ops = `http://${mesh.opsAddress}`;
    const metrics = await fetch(`${ops}/metrics`);
    expect(metrics.status).toBe(200);
    expect(metrics.headers.get("content-type")).toContain("text/plain");
    expect(await metrics.text()).toContain("# TYPE process_cpu_seconds_total counter");
    expect(await (await fetch(`${ops}/readyz`)).text()).toBe("ready\n");
    expect(await (await fetch(`${ops}/healthz`)).text()).toBe("ok\n");
    const head = await fetch(`${ops}/healthz`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "3"]);
    expect((await fetch(`${ops}/v1/models`)).status).toBe(404);
    expect((await fetch(`${mesh.origin}/metrics`)).status).toBe(404);
  });

  test("the demo account has its opening balance", async () => {
    expect((await fetch(`${mesh.baseUrl}/billing`)).status).toBe(401);
    expect(await billing(mesh, mesh.bannerKey)).toMatchObject({
      availableUsdMicros: 25_000_000,
      reservedUsdMicros: 0,
      spendableUsdMicros: 25_000_000,
      credits: { available: 10_000 },
    });
  });

  test("tokens are kept for their owner alone, and the pending key is gone", async () => {
    for (const name of ["admin-token", "mesh-token"]) {
      expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o600);
    }
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
    expect(await readdir(dataDir)).not.toContain("bootstrap-key");
  });

  test("the admin token that it made signs an operator in to the console, and its log says where that lies", async () => {
    const file = join(dataDir, "admin-token");
    const token = (await readFile(file, "utf8")).trim();
    const headers = { "content-type": "application/json", origin: mesh.origin };
    const signIn = (secret: string) => {
      const body = JSON.stringify({ secret });
      return fetch(`${mesh.origin}/console/api/session`, { method: "POST", headers, body });
    };
    expect((await signIn(`${token.slice(0, -1)}-`)).status).toBe(401);
    const signedIn = await signIn(token);
    expect(await signedIn.json()).toMatchObject({ role: "operator" });
    const cookie = signedIn.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
    const accounts = await fetch(`${mesh.origin}/console/api/admin/accounts`, {
      headers: { cookie },
    });
    expect(accounts.status).toBe(200);
    await until("the log", () => mesh.stderr().includes(JSON.stringify(file)));
    expect(mesh.stderr()).not.toContain(token);
  });

  test("a second process on the same data directory is refused, naming the first", async () => {
    const second = await runHost({ GENMESH_DATA_DIR: dataDir });
    expect(second).toEqual({
      code: 1,
      stdout: "",
      stderr: `genmesh: GENMESH_DATA_DIR ${dataDir} is in use by process ${mesh.pid}: stop it, or choose another directory\n`,
    });
    expect((await fetch(`${mesh.origin}/readyz`)).status).toBe(200);
  });
});

describe("a start that cannot be", () => {
  // services/host/config.test.ts checks the values of variables. This test checks that a process reports them.
  test.each<[string, Record<string, string>, string[]?]>([
    ["PORT", { PORT: "eighty" }],
    ["GENMESH_ROLE", {}, ["--role", "cook"]],
  ])("%s: exit 1 with one line that names it (%o %o)", async (name, env, args) => {
    const { code, stdout, stderr } = await runHost(env, args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^genmesh: ${name} must .+\\n$`));
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("an unknown option is told in one line", async () => {
    const { code, stderr } = await runHost({}, ["--rolle", "all"]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "genmesh: Unknown option '--rolle'\n" });
  });

  test("a port that is taken: exit 1, in one line", async () => {
    await using folder = await tempFolder();
    await using taken = await takenPort();
    const env = { GENMESH_DATA_DIR: folder.path, PORT: `${taken.port}` };
    expect(await runHost(env)).toEqual({
      code: 1,
      stdout: "",
      stderr: `genmesh: ${inUse("PORT", taken.port)}\n`,
    });
  });

  test.each(["GRPC_PORT", "GENMESH_OPS_PORT"])(
    "%s that is taken is said as plainly",
    async (name) => {
      await using folder = await tempFolder();
      await using taken = await takenPort();
      const env = { GENMESH_DATA_DIR: folder.path, [name]: `${taken.port}` };
      expect(await faultOfStart(env)).toBe(inUse(name, taken.port));
    },
  );

  test("an address that is none of this machine's names HOST", async () => {
    await using folder = await tempFolder();
    const fault = await faultOfStart({ GENMESH_DATA_DIR: folder.path, HOST: "192.0.2.7" });
    expect(fault).toMatch(/^HOST must be an address of this machine.+192\.0\.2\.7/);
  });

  test.each([
    ["a file that is not there", undefined, /ENOENT|no such file|does not exist|cannot be read/i],
    ["no YAML", "models: [", /line 1|YAML/i],
    [
      "faults",
      "upstreams: {}\nmodels: []\ncolour: red\n",
      /models: .+ \(and \d more: genmesh catalog check\)/,
    ],
  ])("a catalog with %s: one line that names GENMESH_CATALOG", async (_what, text, fault) => {
    await using folder = await tempFolder();
    const file = join(folder.path, "catalog.yaml");
    if (text !== undefined) await writeFile(file, text);
    const said = await faultOfStart({ GENMESH_DATA_DIR: folder.path, GENMESH_CATALOG: file });
    expect(said).toMatch(/^GENMESH_CATALOG must name a valid catalog file; .+$/);
    expect(said).toContain(file);
    expect(said).toMatch(fault);
  });

  test.each(["/proc/x", "/proc/x/y"])(
    "a data directory %s, where no folder can be made, is refused",
    async (dataDir) => {
      const said = await faultOfStart({ GENMESH_DATA_DIR: dataDir });
      expect(said).toMatch(/^GENMESH_DATA_DIR must be a folder that can be written: .+$/);
    },
  );

  test("a place where nothing can be stored names its variable", async () => {
    await using folder = await tempFolder();
    const file = join(folder.path, "file");
    await writeFile(file, "this is no database");
    const dataDir = join(folder.path, "data");
    await mkdir(dataDir);
    for (const [name, value] of [
      ["GENMESH_DATA_DIR", file],
      ["GENMESH_DATABASE_URL", `sqlite:${file}`],
      ["GENMESH_BLOBS_URL", `file:${file}`],
    ] as const) {
      const fault = await faultOfStart({ GENMESH_DATA_DIR: dataDir, [name]: value });
      expect(fault).toMatch(new RegExp(`^${name} must .+$`));
    }
  });
});

/** The error of a start in this process: the line that `npm start` prints. */
async function faultOfStart(env: Record<string, string>): Promise<string> {
  const config = envToConfig({ PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0", ...env });
  const options = { log: createLogger("silent"), signal: new AbortController().signal };
  const fault = await startRoleAll(config, options).then(
    (mesh) => mesh[Symbol.asyncDispose]().then(() => expect.unreachable()),
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(ConfigError);
  return (fault as ConfigError).message;
}

async function takenPort(): Promise<AsyncDisposable & { port: number }> {
  const port = await freePort();
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  return { port, [Symbol.asyncDispose]: async () => void server.close() };
}

function inUse(name: string, port: number): string {
  return `${name} ${port} is in use by another program (at 127.0.0.1:${port}): stop it, or choose another port`;
}

async function billing(mesh: RunningMesh, key: string | undefined): Promise<unknown> {
  const answer = await fetch(`${mesh.baseUrl}/billing`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(answer.status).toBe(200);
  return answer.json();
}
