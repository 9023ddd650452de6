import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { sampleMp3 } from "../../services/upstreams/media/samples.fixture.ts";
import type { Caller } from "../e2e/caller.ts";
import { startMediaWorld } from "../e2e/media-world.ts";
import { isOwnWorld } from "../e2e/world.ts";
import { type Exchange, readDescribed } from "../support/described.ts";

const run = promisify(execFile);
const described = await readDescribed();
const root = fileURLToPath(new URL("../..", import.meta.url));
const description = join(root, "gateway/openapi.json");
const own = fileURLToPath(new URL("generated", import.meta.url));
/** Characters that a client may print. Its exchanges have some 200,000. */
const maxBuffer = 16 << 20;
const folder = await mkdtemp(join(tmpdir(), "genmesh-clients-"));
afterAll(() => rm(folder, { recursive: true }));

/** A folder in which `openapi-typescript`, `openapi-fetch` and the TypeScript that they need are installed. */
const packages = process.env.GENMESH_TEST_OPENAPI_TYPESCRIPT ?? "";
const noPackages = await stat(join(packages, "node_modules/openapi-typescript")).then(
  () => undefined,
  () =>
    "needs GENMESH_TEST_OPENAPI_TYPESCRIPT, a folder after `npm install openapi-typescript openapi-fetch typescript@5`",
);
/** A Python that has `openapi-python-client`. */
const python = process.env.PYTHON ?? "python3";
const noPython = await run(python, ["-c", "import openapi_python_client"]).then(
  () => undefined,
  () =>
    `needs \`${python} -m pip install openapi-python-client\` (PYTHON names another interpreter)`,
);
for (const why of [noPackages, noPython]) {
  if (why !== undefined) process.stderr.write(`skipped: a generated client ${why}\n`);
}

/** Runs a client against a world with every kind of model, and returns its exchanges. */
async function exchangesOf(call: (args: string[]) => Promise<string>): Promise<Exchange[]> {
  await using made = await startMediaWorld();
  const { world, media, png } = made;
  const vectors = { data: [{ index: 0, embedding: [0.5, -1] }], usage: { prompt_tokens: 3 } };
  media.always("POST /embeddings", { kind: "json", body: vectors });
  const said = { text: "Hi, you.", usage: { type: "duration", seconds: 0.06 } };
  media.always("POST /audio/transcriptions", { kind: "json", body: said });
  const caller = await ableCaller(world);
  const files = { picture: join(folder, "picture.png"), sound: join(folder, "sound.mp3") };
  await writeFile(files.picture, png);
  await writeFile(files.sound, sampleMp3());
  const text = await call([world.baseUrl, caller.key, files.picture, files.sound]);
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** A caller whose key may do everything. */
async function ableCaller(world: Awaited<ReturnType<typeof startMediaWorld>>["world"]) {
  const owner: Caller = await world.caller({ credits: 1_000n });
  const scopes = Object.values(Scope).filter((one) => Number(one) > 0) as Scope[];
  return world.withKey(owner, { scopes });
}

/** Every operation was called, and answered as it is described. */
function expectWhole(exchanges: readonly Exchange[]): void {
  expect(exchanges.flatMap((one) => described.faultsOf(one))).toEqual([]);
  const called = new Set(exchanges.map((one) => described.operationOf(one)?.operationId));
  // It opens a WebSocket, which no generated client does.
  const left = described.operationIds.filter((id) => !called.has(id));
  expect(left).toEqual(["connectResponses"]);
}

test("a client with the types of openapi-typescript compiles, and calls every operation", async ({
  skip,
}) => {
  if (noPackages !== undefined) return skip(noPackages);
  skip(!isOwnWorld, "needs an operator of its own");
  const place = join(folder, "typescript");
  await mkdir(place);
  await symlink(join(packages, "node_modules"), join(place, "node_modules"));
  await copyFile(join(own, "client.ts"), join(place, "client.ts"));
  const command = (name: string) => join(packages, "node_modules", name);
  const generator = command("openapi-typescript/bin/cli.js");
  await run(process.execPath, [generator, description, "-o", join(place, "api.d.ts")]);
  await writeFile(join(place, "package.json"), JSON.stringify({ type: "module" }));
  await run(process.execPath, [
    ...[command("typescript/bin/tsc"), "--noEmit", "--strict", "--skipLibCheck"],
    ...["--target", "es2024", "--module", "preserve", "--moduleDetection", "force"],
    ...["--typeRoots", join(root, "node_modules/@types"), "--types", "node"],
    join(place, "client.ts"),
  ]).catch(({ stdout }) => Promise.reject(new Error(stdout)));
  const exchanges = await exchangesOf(async (args) => {
    const { stdout } = await run(process.execPath, [join(place, "client.ts"), ...args], {
      maxBuffer,
    });
    return stdout;
  });
  expectWhole(exchanges);
});

test("a client of openapi-python-client calls every operation", async ({ skip }) => {
  if (noPython !== undefined) return skip(noPython);
  skip(!isOwnWorld, "needs an operator of its own");
  const place = join(folder, "python");
  await mkdir(place);
  await run(python, [
    ...["-m", "openapi_python_client", "generate", "--path", description, "--meta", "none"],
    ...["--config", join(own, "openapi-python-client.yaml")],
    ...["--output-path", join(place, "genmesh_api")],
  ]);
  const exchanges = await exchangesOf(async (args) => {
    const { stdout } = await run(python, [join(own, "client.py"), ...args], {
      maxBuffer,
      env: { ...process.env, PYTHONPATH: place },
    });
    return stdout;
  });
  expectWhole(exchanges);
});
