import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { type CatalogObject, chat } from "./catalog.ts";
import type { Document } from "./media-world.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const secret = randomBytes(32).toString("base64");
const world = await startWorld({
  isCatalogStored: true,
  env: { GENMESH_ADMIN_TOKEN: adminToken, GENMESH_SECRETS_KEY: secret },
});
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const operator = operatorSession(world);
const { get, post } = operator;
const [firstKey, secondKey] = ["crab-first-key-000000-aaaa", "crab-second-key-00000-bbbb"];
/** All that an operator was answered here. */
const answers: unknown[] = [];

beforeAll(async () => {
  if (isOwnWorld) await operator.signIn();
});

/** The text in force, with an upstream that names a stored key, and models of roles that call upstreams. */
async function withUpstream(name: string): Promise<string> {
  const { json } = await get("/catalog/text");
  const catalog: CatalogObject = JSON.parse(json.yaml);
  const rented = { protocol: "openai", baseUrl: world.upstream.baseUrl, apiKeyStored: name };
  const image = { id: "rented-image", kind: "image", upstream: "rented", creditPrice: 1 };
  const speech = {
    ...{ id: "rented-speech", kind: "speech", upstream: "rented", voices: ["a"] },
    ...{ languages: ["en"], pricing: { usdMicrosPerMillionCharacters: 1_000_000 } },
  };
  return JSON.stringify({
    ...catalog,
    upstreams: { ...catalog.upstreams, rented },
    models: [...catalog.models, chat("rented", { upstream: "rented" }), image, speech],
  });
}

const put = async (yaml: string) => {
  const { newest } = (await get("/catalog/text")).json;
  return post("/catalog/versions", { yaml, expected: newest, operationId: `put-${newest}` });
};
const setKey = async (name: string, key: string) => {
  const answer = await post("/catalog/keys", { name, key });
  answers.push(answer);
  return answer;
};

/** The Authorization of the last request of each path that the upstream got. */
const sentWith = () =>
  new Map(world.upstream.requests.map(({ path, headers }) => [path, headers.authorization]));

test("a key that is stored is used by every role that calls upstreams, and replaced without a version", async () => {
  world.play();
  expect(
    (await post("/catalog/keys", { name: "rented", key: firstKey }, { secret: "" })).code,
  ).toBe("secret_required");
  const missing = await put(await withUpstream("rented"));
  expect(missing.status).toBe(400);
  expect(missing.json.error.message).toContain(
    "upstreams.rented.apiKeyStored: names a key that is not stored",
  );
  expect(await setKey("rented", firstKey)).toMatchObject({
    status: 201,
    json: { object: "upstream.key", name: "rented", hint: "aaaa", upstreams: [] },
  });
  expect(await put(await withUpstream("rented"))).toMatchObject({ status: 201 });

  const caller = await world.caller({ credits: 100n });
  const ask = (model: string) => caller.post("/responses", { model, input: "Hi" });
  await until("the model", async () => (await ask("rented")).status === 200);
  expect(sentWith().get("/v1/responses")).toBe(`Bearer ${firstKey}`);

  await setKey("rented", secondKey);
  await until("the new key", async () => {
    await ask("rented");
    return sentWith().get("/v1/responses") === `Bearer ${secondKey}`;
  });
  await caller.post("/images/generations", { model: "rented-image", prompt: "A crab" });
  await until("the worker", () => sentWith().has("/v1/images/generations"));
  expect(sentWith().get("/v1/images/generations")).toBe(`Bearer ${secondKey}`);
  await caller.post("/audio/speech", { model: "rented-speech", input: "Hi", voice: "a" });
  await until("the speech", () => sentWith().has("/v1/audio/speech"));
  expect(sentWith().get("/v1/audio/speech")).toBe(`Bearer ${secondKey}`);
  expect((await get("/catalog/text")).json.newest).toBe(1);
});

test("a key is listed with who uses it, kept while it is used, and every act is in the audit log", async () => {
  const listed = await get("/catalog/keys");
  expect(listed.json).toMatchObject({
    isOn: true,
    data: [{ name: "rented", hint: "bbbb", upstreams: ["rented"] }],
  });
  const used = await post("/catalog/keys/rented/delete", {});
  expect(used).toMatchObject({ status: 409, code: "state_conflict" });
  expect(used.json.error.message).toContain("rented");
  await setKey("spare", firstKey);
  expect((await post("/catalog/keys/spare/delete", {})).json).toMatchObject({ deleted: true });
  expect((await post("/catalog/keys/spare/delete", {})).status).toBe(404);
  const audit = await get("/audit");
  const acts = audit.json.data;
  expect(
    acts
      .filter(({ target }: Document) => target === "rented" || target === "spare")
      .map(({ action, target, outcome }: Document) => [action, target, outcome]),
  ).toEqual([
    ["catalog.delete_key", "spare", "refused"],
    ["catalog.delete_key", "spare", "done"],
    ["catalog.set_key", "spare", "done"],
    ["catalog.delete_key", "rented", "refused"],
    ["catalog.set_key", "rented", "done"],
    ["catalog.set_key", "rented", "done"],
  ]);
});

test("an act that is refused tells the parameter, and reaches neither the store nor the audit log", async () => {
  const before = (await get("/audit")).json.data.length;
  for (const [body, param] of [
    [{ name: firstKey.toUpperCase(), key: firstKey }, "name"],
    [{ name: "Bearer x", key: firstKey }, "name"],
    [{ key: firstKey }, "name"],
    [{ name: "other" }, "key"],
    [{ name: "other", key: 7 }, "key"],
    [{ name: "other", key: "" }, "key"],
    [{ name: "other", key: "k".repeat(4_097) }, "key"],
  ] as const) {
    const answer = await post("/catalog/keys", body);
    answers.push(answer);
    expect([answer.status, answer.json.error.param], JSON.stringify(body)).toEqual([400, param]);
  }
  expect((await get("/audit")).json.data.length).toBe(before);
  // The service judges the characters of a key, so this one is a line.
  const spaced = await setKey("other", "crab with blanks");
  expect([spaced.status, spaced.json.error.param]).toEqual([400, "key"]);
  expect((await get("/catalog/keys")).json.data).toHaveLength(1);
});

test("no answer, page of the operator, log line or metric has a key or the secret", async () => {
  for (const path of [
    ...["/catalog", "/catalog/text", "/catalog/versions", "/catalog/keys"],
    ...["/upstreams", "/audit", "/system", "/notices"],
  ]) {
    answers.push(await get(path));
  }
  const probe = await post("/upstreams/rented/probe", {});
  answers.push(probe);
  for (const url of world.opsUrls) {
    answers.push(await (await fetch(`${url}/metrics`)).text());
  }
  const told = JSON.stringify(answers) + world.log.join("");
  expect(told).not.toMatch(/crab-(first|second)-key|crab with|CRAB/);
  expect(told).not.toContain(secret);
  expect(told).not.toMatch(/v1\.[A-Za-z0-9+/]{40}/);
});
