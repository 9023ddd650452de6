import { watch } from "node:fs";
import { access, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { envToConfig } from "../../services/host/config.ts";
import { type RoleAllProcess, startRoleAll } from "../../services/host/role-all.ts";
import { operatorOf } from "./operator.ts";
import { type RunningMesh, startHost, startRunning, tempFolder } from "./process.ts";

const givenKey = "a-key-of-the-operator_0123";

test("a key that is given is the demo account's, is not printed, and counts once", async () => {
  await using folder = await tempFolder();
  const env = {
    GENMESH_DATA_DIR: folder.path,
    GENMESH_BOOTSTRAP_API_KEY: givenKey,
    GENMESH_BOOTSTRAP_USD_MICROS: "1234567",
    GENMESH_BOOTSTRAP_CREDITS: "0",
  };
  {
    await using first = await startRunning(env);
    expect(first.stdout()).toBe(
      `genmesh is ready: ${first.baseUrl}\nconsole: ${first.origin}/console/\n`,
    );
    expect(first.stderr()).not.toContain(givenKey);
    expect(await billing(first, givenKey)).toMatchObject({
      availableUsdMicros: 1_234_567,
      credits: { available: 0 },
    });
    // The owner's key has the right to manage keys, which is never implied. It makes a key without that right.
    const made = await makeKey(first, givenKey);
    expect(made).toMatchObject({ status: 201, key: expect.stringMatching(/^gm_/) });
    expect(await makeKey(first, made.key)).toMatchObject({ status: 403 });
  }
  // The directory is not new, so these variables make nothing.
  await using again = await startHere({
    ...env,
    GENMESH_BOOTSTRAP_API_KEY: "another-key-0123456789",
    GENMESH_BOOTSTRAP_USD_MICROS: "99",
  });
  expect(again.bootstrap.apiKey).toBeUndefined();
  expect(await billing(again, givenKey)).toMatchObject({ availableUsdMicros: 1_234_567 });
  expect(await billing(again, "another-key-0123456789")).toBeUndefined();
  expect(await accountNames(again, folder.path)).toEqual(["demo"]);
});

async function makeKey({ baseUrl }: { baseUrl: string }, apiKey: string) {
  const response = await fetch(`${baseUrl}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "worker" }),
  });
  const { key } = (await response.json()) as { key: string };
  return { status: response.status, key };
}

test("a made key is printed until it was shown, then never again", async () => {
  await using folder = await tempFolder();
  let lost: string | undefined;
  {
    // The process was killed after the account was made, before its owner saw its key.
    await using mesh = await startHere({ GENMESH_DATA_DIR: folder.path });
    lost = mesh.bootstrap.apiKey;
    expect(lost).toMatch(/^gm_/);
  }
  {
    await using next = await startRunning({ GENMESH_DATA_DIR: folder.path });
    expect(next.bannerKey).toBe(lost);
    expect(await billing(next, lost)).toMatchObject({ availableUsdMicros: 25_000_000 });
    expect(await accountNames(next, folder.path)).toEqual(["demo"]);
  }
  await using last = await startRunning({ GENMESH_DATA_DIR: folder.path });
  expect(last.stdout()).toBe(
    `genmesh is ready: ${last.baseUrl}\nconsole: ${last.origin}/console/\n`,
  );
  expect(await billing(last, lost)).toMatchObject({ availableUsdMicros: 25_000_000 });
});

test("killed while the account is being made: the next start completes it and shows its key", async () => {
  await using folder = await tempFolder();
  const dataDir = join(folder.path, "data");
  await mkdir(dataDir);
  {
    using watcher = disposable(watch(dataDir));
    await using child = await startHost({ GENMESH_DATA_DIR: dataDir });
    // The key is written into a file before the account is made. A kill at any later moment must be safe.
    await new Promise<void>((resolve) => {
      watcher.on("change", (_, name) => name === "bootstrap-key" && resolve());
    });
    child.kill("SIGKILL");
    await child.ended;
  }
  await using mesh = await startRunning({ GENMESH_DATA_DIR: dataDir });
  const shownBefore = await access(join(dataDir, "bootstrapped")).then(
    () => mesh.bannerKey === undefined,
    () => false,
  );
  // The key was shown before the kill, so there is nothing to check.
  if (shownBefore) return;
  expect(await billing(mesh, mesh.bannerKey)).toMatchObject({
    availableUsdMicros: 25_000_000,
    credits: { available: 10_000 },
  });
  expect(await accountNames(mesh, dataDir)).toEqual(["demo"]);
});

test("a key that was written down by a start that made nothing is the one that is made", async () => {
  await using folder = await tempFolder();
  await writeFile(join(folder.path, "bootstrap-key"), `${givenKey}\n`);
  await using mesh = await startHere({ GENMESH_DATA_DIR: folder.path });
  expect(mesh.bootstrap.apiKey).toBe(givenKey);
  expect(await billing(mesh, givenKey)).toMatchObject({ availableUsdMicros: 25_000_000 });
});

/** Starts a mesh in this process, because these tests do not check the command. A process of its own takes a second of a core. */
function startHere(env: Record<string, string>): Promise<RoleAllProcess> {
  const ports = { PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0" };
  const { signal } = new AbortController();
  return startRoleAll(envToConfig({ ...ports, ...env }), { log: createLogger("silent"), signal });
}

/** Undefined where the key is refused. */
async function billing(
  mesh: Pick<RunningMesh, "baseUrl">,
  key: string | undefined,
): Promise<unknown> {
  const answer = await fetch(`${mesh.baseUrl}/billing`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return answer.ok ? answer.json() : undefined;
}

async function accountNames(
  mesh: Pick<RunningMesh, "grpcAddress">,
  dataDir: string,
): Promise<string[]> {
  const { accounts } = await (await operatorOf(mesh, dataDir)).auth.listAccounts({});
  return accounts.map((one) => one.name);
}

function disposable<T extends { close(): void }>(value: T): T & Disposable {
  return Object.assign(value, { [Symbol.dispose]: () => value.close() });
}
