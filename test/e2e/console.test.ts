import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { askConsole, type ConsoleRequest, ownPage, signIn } from "../edge/console-client.ts";
import { until } from "../support/until.ts";
import { isOwnWorld, ownWorldOnly, startWorld, type World } from "./world.ts";

ownWorldOnly();

const operatorToken = "operator-token-of-these-tests";
/** Milliseconds. A mesh of two processes for each role starts on a busy machine. */
const setUpMs = 180_000;
/** Milliseconds for an image on a busy machine. */
const pictureMs = 50_000;
let world: World;
/** Every gateway of the world, for requests that take turns. */
let ports: number[];
beforeAll(async () => {
  if (!isOwnWorld) return;
  // Its models are built in, image models too.
  const catalog = await readFile(join(import.meta.dirname, "../../deploy/catalog.yaml"), "utf8");
  world = await startWorld({ catalog, env: { GENMESH_ADMIN_TOKEN: operatorToken } });
  ports = world.baseUrls.map((url) => Number(new URL(url).port));
}, setUpMs);
afterAll(() => world?.[Symbol.asyncDispose]());

let turn = 0;
const nextPort = () => ports[turn++ % ports.length] ?? 0;
const ask = (path: string, given: ConsoleRequest = {}) => askConsole(nextPort(), path, given);
const post = (path: string, body: unknown, given: ConsoleRequest = {}) =>
  ask(path, { method: "POST", body, ...given, headers: { ...ownPage, ...given.headers } });

test("a session answers, pays and shows pictures, whichever gateway is asked", async () => {
  const caller = await world.caller({ credits: 100n });
  const cookie = await signIn(nextPort(), caller.key);
  const answer = await post(
    "/console/api/v1/responses",
    { model: "chat-1", input: "hi" },
    { cookie },
  );
  expect(answer.json).toMatchObject({ status: "completed" });
  const job = await post(
    "/console/api/v1/images/generations",
    { model: "image-1", prompt: "a fox" },
    { cookie },
  );
  expect(job.status).toBe(202);
  const path = new URL(job.json.statusUrl).pathname;
  expect(path).toMatch(/^\/console\/api\/v1\/images\//);
  let done = job;
  await until(
    "the job",
    async () => {
      done = await ask(path, { cookie });
      return done.json.status === "completed";
    },
    { withinMs: pictureMs },
  );
  const picture = new URL(done.json.images[0].url).pathname;
  expect((await ask(picture, { cookie })).status).toBe(200);
  expect((await ask(picture)).status).toBe(401);
  const billing = await ask("/console/api/v1/billing", { cookie });
  expect(billing.json).toEqual((await caller.get("/billing")).json);
});

test("a key made in the console works on /v1; revoking it ends its sessions at once", async () => {
  const begun = await world.caller();
  const owner = await world.withKey(begun, { scopes: [Scope.KEYS, Scope.TEXT, Scope.MODELS] });
  const cookie = await signIn(nextPort(), owner.key);
  const refused = await post("/console/api/v1/keys", { name: "app" }, { cookie });
  expect(refused.json.error.code).toBe("secret_required");
  const headers = { "x-console-secret": owner.key };
  const made = await post("/console/api/v1/keys", { name: "app" }, { cookie, headers });
  expect(made.status).toBe(201);
  const app = world.holding(made.json.key);
  expect((await app.get("/models")).status).toBe(200);
  const appCookie = await signIn(nextPort(), made.json.key);
  const revoked = await ask(`/console/api/v1/keys/${made.json.data.id}`, {
    method: "DELETE",
    cookie,
    headers: ownPage,
  });
  expect(revoked.status).toBe(200);
  for (let n = 0; n < ports.length; n++) {
    expect((await ask("/console/api/v1/models", { cookie: appCookie })).status).toBe(401);
  }
});

test("failed sign-ins count over all gateways", async () => {
  const wrong = () => post("/console/api/session", { secret: "x".repeat(30) });
  const told = [];
  for (let n = 0; n < 11; n++) told.push((await wrong()).status);
  expect(told).toEqual([...Array(10).fill(401), 429]);
  await world.later(60_000);
});

test("an operator signs in at one gateway and is one at the next; sessions end by time", async () => {
  const cookie = await signIn(nextPort(), operatorToken);
  for (let n = 0; n < ports.length; n++) {
    expect((await ask("/console/api/session", { cookie })).json.role).toBe("operator");
  }
  const { key } = await world.caller();
  const member = await signIn(nextPort(), key);
  await world.later(15 * 60_000);
  expect((await ask("/console/api/session", { cookie })).status).toBe(401);
  expect((await ask("/console/api/session", { cookie: member })).status).toBe(200);
  await world.later(30 * 60_000);
  expect((await ask("/console/api/session", { cookie: member })).status).toBe(401);
});
