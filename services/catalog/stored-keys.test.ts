import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createSeal, type Seal } from "#kit/base/seal.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { maxStoredKeys, pollMs } from "./limits.ts";
import { startReplica } from "./replica.fixture.ts";

const workshop = createWorkshop();
afterAll(() => workshop[Symbol.asyncDispose]());

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-stored-keys-"));
  file = join(folder, "catalog.yaml");
  await writeFile(file, keyless);
});
afterEach(() => rm(folder, { recursive: true }));

const keyless = `
upstreams: { studio: { protocol: builtin } }
models: [{ id: music-1, kind: music, upstream: studio, creditPrice: 1 }]
`;
/** A catalog whose upstream names a stored key. */
const naming = (name: string) => `
upstreams: { main: { protocol: openai, baseUrl: "https://up.example/v1", apiKeyStored: ${name} } }
models: [{ id: speech-1, kind: speech, upstream: main, voices: [a], languages: [en], pricing: { usdMicrosPerMillionCharacters: 1 } }]
`;

const [first, second] = [randomBytes(32), randomBytes(32)];
const long = `sk-${"k".repeat(30)}wxyz`;

/** A replica over the store of this test, with a client. */
async function replica(secrets: Seal | "none" = createSeal([first]), { isStored = true } = {}) {
  const seal = secrets === "none" ? undefined : secrets;
  const { client, clock, lines } = await startReplica({ folder, workshop, isStored, seal });
  const set = (name: string, key: string) => client.setUpstreamKey({ name, key, actor: "anna" });
  const put = async (text: string) =>
    client.putInForce({
      text: { case: "yaml", value: text },
      expectedNumber: (await client.getText({})).newestNumber,
      actor: "anna",
      operationId: randomIds.make("op", 12),
    });
  /** Watches to the end of the test, and keeps the keys of each message with keys. */
  const watch = (wantsKeys = true) => {
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const seen: Record<string, string>[] = [];
    const messages = client.watchSnapshots({ wantsKeys }, { signal: stop.signal });
    const heard = { messages: 0, seen };
    void (async () => {
      for await (const { keys } of messages) {
        heard.messages++;
        if (keys) seen.push(Object.fromEntries(keys.keys.map((one) => [one.name, one.sealed])));
      }
    })().catch(() => {});
    return heard;
  };
  return { client, clock, set, put, watch, lines };
}

test("a key that is set is listed without its value, with who uses it", async () => {
  const { client, set, put } = await replica();
  await set("short", "sk-1234567890123456");
  const { key } = await set("main", long);
  expect(key).toMatchObject({ name: "main", hint: "wxyz", actor: "anna", upstreams: [] });
  expect((await put(naming("main"))).faults).toEqual([]);
  const listed = await client.listUpstreamKeys({});
  expect(listed).toMatchObject({
    isOn: true,
    keys: [
      { name: "main", hint: "wxyz", upstreams: ["main"] },
      { name: "short", hint: "", upstreams: [] },
    ],
  });
  const { snapshot } = await client.getSnapshot({});
  expect(snapshot?.upstreams.main).toMatchObject({ apiKeyStored: "main", apiKeyEnv: "" });
  const told = JSON.stringify([listed, key, snapshot], (_, one) =>
    typeof one === "bigint" ? `${one}` : one,
  );
  expect(told).not.toContain("kkk");
});

test("a key reaches those who want keys, sealed: at first, when it is set anew, and when it goes", async () => {
  const seal = createSeal([first]);
  const [one, other] = [await replica(seal), await replica(seal)];
  await one.set("main", "sk-1");
  const [here, there, without] = [one.watch(), other.watch(), one.watch(false)];
  const opened = (seen: readonly Record<string, string>[]) =>
    seen.map((keys) =>
      Object.fromEntries(
        Object.entries(keys).map(([name, sealed]) => [name, seal.open(name, sealed)?.text]),
      ),
    );
  await expect.poll(() => opened(here.seen)).toEqual([{ main: "sk-1" }]);
  await one.set("main", "sk-2");
  await expect.poll(() => opened(here.seen).at(-1)).toEqual({ main: "sk-2" });
  const later = async () => {
    await other.clock.advance(pollMs);
    return opened(there.seen).at(-1);
  };
  await expect.poll(later).toEqual({ main: "sk-2" });
  await one.client.deleteUpstreamKey({ name: "main" });
  await expect.poll(() => opened(here.seen).at(-1)).toEqual({});
  expect(opened(here.seen)).toHaveLength(3);
  expect({ ...without, messages: without.messages > 0 }).toEqual({ messages: true, seen: [] });
});

test("a catalog that names a key that is not stored is refused, with the place", async () => {
  const { client, set, put } = await replica();
  const fault = {
    path: "upstreams.main.apiKeyStored",
    message: "names a key that is not stored",
  };
  expect((await client.checkDraft({ yaml: naming("main") })).faults).toMatchObject([fault]);
  expect((await put(naming("main"))).faults).toMatchObject([fault]);
  await set("main", long);
  expect((await client.checkDraft({ yaml: naming("main") })).faults).toEqual([]);
  const asKey = await client.checkDraft({ yaml: naming(long) });
  expect(asKey.faults).toMatchObject([
    { path: "upstreams.main.apiKeyStored", message: expect.stringMatching(/name of a stored key/) },
  ]);
});

test("a key that is in use stays, and is deleted once nothing names it", async () => {
  const { client, set, put } = await replica();
  const conflict = { reason: ErrorReason.STATE_CONFLICT };
  await set("main", long);
  await put(naming("main"));
  await expect(client.deleteUpstreamKey({ name: "main" })).rejects.toMatchObject(conflict);
  expect((await client.listUpstreamKeys({})).keys).toHaveLength(1);
  await put(keyless);
  await client.deleteUpstreamKey({ name: "main" });
  expect((await client.listUpstreamKeys({})).keys).toEqual([]);
  const gone = { reason: ErrorReason.OBJECT_NOT_FOUND };
  await expect(client.deleteUpstreamKey({ name: "main" })).rejects.toMatchObject(gone);
});

test("where a file is the master no key is stored, and none may be named", async () => {
  const { client, set } = await replica(createSeal([first]), { isStored: false });
  const conflict = { reason: ErrorReason.STATE_CONFLICT };
  await expect(set("main", long)).rejects.toMatchObject(conflict);
  expect(await client.listUpstreamKeys({})).toMatchObject({ keys: [], isOn: false });
  const told = { path: "upstreams.main.apiKeyStored", message: expect.stringMatching(/a file is/) };
  expect((await client.checkDraft({ yaml: naming("main") })).faults).toMatchObject([told]);
  await writeFile(file, naming("main"));
  await expect(replica("none", { isStored: false })).rejects.toThrow(/apiKeyStored: needs/);
});

test("without a secret keys are listed and deleted, and none is set", async () => {
  await (await replica()).set("main", long);
  const { client, set } = await replica("none");
  const conflict = {
    reason: ErrorReason.STATE_CONFLICT,
    message: expect.stringMatching(/GENMESH_SECRETS_KEY/),
  };
  await expect(set("main", "sk-2")).rejects.toMatchObject(conflict);
  expect(await client.listUpstreamKeys({})).toMatchObject({
    isOn: false,
    keys: [{ name: "main" }],
  });
  await client.deleteUpstreamKey({ name: "main" });
});

test("another secret keeps the service from starting, and an earlier one behind it does not", async () => {
  await (await replica(createSeal([first]))).set("main", "sk-1");
  await expect(replica(createSeal([second]))).rejects.toMatchObject({
    name: "WrongSealError",
    message: "main",
  });
  // This start seals the key by the new secret. The next start has that one alone.
  await replica(createSeal([second, first]));
  const { watch } = await replica(createSeal([second]));
  const { seen } = watch();
  await expect.poll(() => seen.length).toBe(1);
  expect(createSeal([second]).open("main", seen[0]?.main ?? "")?.text).toBe("sk-1");
});

test("names and keys of other forms are refused, and a refusal repeats neither", async () => {
  const { client, set, lines } = await replica();
  const refused = (field: string) => ({
    reason: ErrorReason.INVALID_ARGUMENT,
    metadata: { field },
  });
  for (const name of ["", "Main", "1", "a b", "a/b", "a".repeat(33), "sk-Proj"]) {
    await expect(set(name, long)).rejects.toMatchObject(refused("name"));
  }
  for (const key of ["", "two words", "line\nline", "ä", "k".repeat(4_097)]) {
    await expect(set("main", key)).rejects.toMatchObject(refused("key"));
  }
  expect((await client.listUpstreamKeys({})).keys).toEqual([]);
  expect(lines.join("")).not.toMatch(/two words|kkk|sk-Proj/);
});

test("a catalog names a key at once that another replica has stored, and none that it has deleted", async () => {
  const [one, other] = [await replica(), await replica()];
  await one.set("main", long);
  expect((await other.client.checkDraft({ yaml: naming("main") })).faults).toEqual([]);
  expect((await other.put(naming("main"))).faults).toEqual([]);
  await other.put(keyless);
  await one.client.deleteUpstreamKey({ name: "main" });
  expect((await other.put(naming("main"))).faults).toMatchObject([
    { message: "names a key that is not stored" },
  ]);
});

test("where the keys cannot be read for a while, the last read stands, and they are read again", async () => {
  const [{ client, clock, set, watch }, other] = [await replica(), await replica()];
  await set("main", "sk-1");
  using sqlite = new DatabaseSync(join(folder, "genmesh.sqlite"));
  sqlite.exec("ALTER TABLE catalog_stored_key RENAME TO away");
  await clock.advance(pollMs);
  expect((await client.listUpstreamKeys({})).keys).toMatchObject([{ name: "main" }]);
  sqlite.exec("ALTER TABLE away RENAME TO catalog_stored_key");
  const { seen } = watch();
  await other.set("main", "sk-2");
  const opened = async () => {
    await clock.advance(pollMs);
    return createSeal([first]).open("main", seen.at(-1)?.main ?? "")?.text;
  };
  await expect.poll(opened).toBe("sk-2");
});

test("there are at most as many keys as a catalog has upstreams", async () => {
  const { set } = await replica();
  for (let n = 0; n < maxStoredKeys; n++) await set(`k${n}`, "sk-1");
  const conflict = { reason: ErrorReason.STATE_CONFLICT };
  await expect(set("one-more", "sk-1")).rejects.toMatchObject(conflict);
  await set("k0", "sk-2");
});
