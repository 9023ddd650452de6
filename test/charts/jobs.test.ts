import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseSealSecrets } from "../../services/host/config-secrets.ts";
import { root, startProcess, startRunning, tempFolder, type Variables } from "../host/process.ts";

const adminToken = "admin-token-of-the-charts";

/** Runs a Job's program to its end. */
async function runJob(name: string, args: string[], env: Variables = {}) {
  const file = join(root, "deploy/jobs", `${name}.ts`);
  const job = startProcess(process.execPath, [file, ...args], { env });
  const { code } = await job.ended;
  return { code, stdout: job.stdout(), stderr: job.stderr() };
}

/** An API server with only the Secrets of the Job. */
async function startApiServer(secrets: Map<string, Record<string, string>>) {
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
    const answer = (status: number, value: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    const [, name] =
      /^\/api\/v1\/namespaces\/models\/secrets(?:\/(.+))?$/.exec(request.url ?? "") ?? [];
    if (request.headers.authorization !== "Bearer pod-token") {
      return answer(403, { message: "secrets is forbidden" });
    }
    const key = name ?? body.metadata.name;
    const found = secrets.get(key);
    if (request.method === "POST") {
      if (found) return answer(409, { message: "already exists" });
      secrets.set(key, body.stringData);
      return answer(201, {});
    }
    if (request.method === "PATCH") Object.assign(found ?? {}, body.stringData);
    return answer(200, { data: found });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("tokens are made once, completed where one lacks, and never replaced", async () => {
  await using folder = await tempFolder();
  const credentials = join(folder.path, "account");
  await mkdir(credentials);
  await writeFile(join(credentials, "namespace"), "models");
  await writeFile(join(credentials, "token"), "pod-token\n");
  const secrets = new Map<string, Record<string, string>>();
  const api = await startApiServer(secrets);
  const args = ["--secret", "mesh", "--api", api, "--credentials", credentials];

  const first = await runJob("make-tokens", args);
  expect(first).toMatchObject({ code: 0, stdout: "made the Secret mesh\n" });
  const made = { ...secrets.get("mesh") };
  expect(Object.keys(made).sort()).toEqual([
    ...["admin-token", "bootstrap-api-key", "mesh-token", "secrets-key"],
  ]);
  expect(parseSealSecrets("secrets-key", `${made["secrets-key"]}`)).toHaveLength(1);
  expect(made["bootstrap-api-key"]).toMatch(/^gm_[A-Za-z0-9_-]{43}$/);
  expect(new Set(Object.values(made)).size).toBe(4);

  expect(await runJob("make-tokens", args)).toMatchObject({ code: 0 });
  expect(secrets.get("mesh")).toEqual(made);

  secrets.set("mesh", { "mesh-token": "of the operator's own" });
  const third = await runJob("make-tokens", args);
  expect(third.stdout).toBe(
    "added admin-token, bootstrap-api-key, secrets-key to the Secret mesh\n",
  );
  expect(secrets.get("mesh")?.["mesh-token"]).toBe("of the operator's own");

  for (const { stdout, stderr } of [first, third]) {
    for (const secret of Object.values(made)) expect(stdout + stderr).not.toContain(secret);
  }
  await writeFile(join(credentials, "token"), "of another pod");
  const fourth = await runJob("make-tokens", args);
  expect(fourth).toMatchObject({ code: 1, stdout: "" });
  expect(fourth.stderr).toBe("could not make the Secret mesh: 403 secrets is forbidden\n");
});

test("an account is made once, a picture and a stream are charged to the micro", async () => {
  await using folder = await tempFolder();
  await using mesh = await startRunning({
    GENMESH_DATA_DIR: join(folder.path, "data"),
    GENMESH_ADMIN_TOKEN: adminToken,
  });
  const server = ["--server", mesh.grpcAddress];
  const env = { GENMESH_ADMIN_TOKEN: adminToken, GENMESH_BASE_URL: mesh.baseUrl };
  const key = "gm_a-key-that-the-chart-made";
  const own = { ...env, GENMESH_BOOTSTRAP_API_KEY: key };
  const words = [
    ...server,
    "--operation-id",
    "first",
    "--usd-micros",
    "1000000",
    "--credits",
    "50",
  ];
  const first = await runJob("bootstrap", words, own);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(first.stdout).toMatch(/^account acct_\w+ made\n$/);
  expect((await runJob("bootstrap", words, own)).stdout).toBe(
    first.stdout.replace("made", "was there"),
  );
  const other = await runJob(
    "bootstrap",
    [...server, "--operation-id", "first", "--usd-micros", "1"],
    own,
  );
  expect(other.code).toBe(1);
  expect(first.stdout + other.stderr).not.toContain(key);
  const billing = await fetch(`${mesh.baseUrl}/billing`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(await billing.json()).toMatchObject({
    availableUsdMicros: 1_000_000,
    credits: { available: 50 },
  });

  // The first key manages its account's other keys.
  const madeKey = await fetch(`${mesh.baseUrl}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "worker" }),
  });
  expect(madeKey.status).toBe(201);

  const kept = [
    ...server,
    "--name",
    "kept",
    "--operation-id",
    "kept",
    "--key-file",
    join(folder.path, "key"),
  ];
  const shown = await runJob("bootstrap", [...kept, "--url", mesh.baseUrl], env);
  expect(shown.stdout).toMatch(/^genmesh is ready: http:\S+\/v1 {2}key: gm_\S+\n$/);
  expect((await runJob("bootstrap", [...kept, "--url", mesh.baseUrl], env)).stdout).toBe(
    shown.stdout,
  );

  const smoke = await runJob("smoke", server, env);
  expect(smoke).toMatchObject({ code: 0, stderr: "" });
  expect(smoke.stdout).toMatch(/^a picture for \d+ credits; a stream for \d+ USD micros\n$/);
  expect(await runJob("smoke", [...server, "--image-model", "nobody"], env)).toMatchObject({
    code: 1,
  });
});
