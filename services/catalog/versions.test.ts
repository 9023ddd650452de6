import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import type { PutInForceRequestSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type CertificateFolder,
  certificateFolder,
  noCertificates,
} from "../../test/support/certificates.ts";
import { pollMs } from "./limits.ts";
import { startReplica } from "./replica.fixture.ts";

/** Its thread takes longer to start than to judge a draft. */
const workshop = createWorkshop();
afterAll(() => workshop[Symbol.asyncDispose]());

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-versions-"));
  file = join(folder, "catalog.yaml");
  await writeFile(file, priced(20));
});
afterEach(() => rm(folder, { recursive: true }));

/** A catalog with one model at a price. */
const priced = (credits: number, more = "") => `${more}
upstreams: { studio: { protocol: builtin } }
models: [{ id: music-1, kind: music, upstream: studio, creditPrice: ${credits} }]
`;

/** A replica over the store of this test, with a client. */
async function replica({ isStored = true, nowMs = Date.now() } = {}) {
  const { client, clock } = await startReplica({ folder, workshop, isStored, nowMs });
  const price = async () => {
    const { snapshot } = await client.getSnapshot({});
    const spec = snapshot?.models[0]?.spec;
    return spec?.case === "music" ? Number(spec.value.creditPrice) : undefined;
  };
  const put = (
    text: string | number,
    expectedNumber: number,
    more: MessageInitShape<typeof PutInForceRequestSchema> = {},
  ) =>
    client.putInForce({
      text:
        typeof text === "number" ? { case: "number", value: text } : { case: "yaml", value: text },
      ...{ expectedNumber, actor: "me", operationId: randomIds.make("op", 12) },
      ...more,
    });
  return { client, clock, price, put };
}

describe("versions in the store", () => {
  test("the file is in force until the first one, and then the newest, here at once", async () => {
    const { client, clock, price, put } = await replica();
    expect(await client.getText({})).toMatchObject({
      ...{ yaml: priced(20), isEditable: true, newestNumber: 0 },
    });
    await writeFile(file, priced(21));
    const priceLater = async () => {
      await clock.advance(pollMs);
      return await price();
    };
    await expect.poll(priceLater).toBe(21);

    const { version, faults } = await put(priced(30, "# dearer"), 0, { note: "dearer" });
    expect({ version, faults }).toMatchObject({
      version: { number: 1, actor: "me", note: "dearer", models: 1 },
      faults: [],
    });
    expect(await price()).toBe(30);
    const inForce = await client.getText({});
    expect(inForce).toMatchObject({ yaml: priced(30, "# dearer"), newestNumber: 1 });
    expect(inForce.version).toMatchObject({ number: 1 });
    // Version 0 is the file as it was.
    expect((await client.getText({ number: 0 })).yaml).toBe(priced(21));
    expect((await client.listVersions({})).versions.map(({ number }) => number)).toEqual([1, 0]);
  });

  test("are in force at another replica at its next look, and after a restart", async () => {
    const one = await replica();
    const other = await replica();
    await one.put(priced(30), 0);
    expect(await other.price()).toBe(20);
    await other.clock.advance(pollMs);
    await expect.poll(other.price).toBe(30);
    const restarted = await replica();
    expect(await restarted.price()).toBe(30);
    expect((await restarted.client.getText({})).version?.number).toBe(1);
  });

  test("an earlier one is put in force again as the next, with its own text", async () => {
    const { client, price, put } = await replica();
    await put(priced(30), 0);
    await put(priced(40), 1);
    const back = await put(1, 2, { note: "back to 30" });
    expect(back.version).toMatchObject({ number: 3, note: "back to 30" });
    expect(await price()).toBe(30);
    expect((await put(0, 3)).version?.number).toBe(4);
    expect(await price()).toBe(20);
    expect((await client.getText({ number: 2 })).yaml).toBe(priced(40));
    await expect(put(9, 4)).rejects.toMatchObject({ reason: ErrorReason.INVALID_ARGUMENT });
  });

  test("a text with faults changes nothing", async () => {
    const { client, price, put } = await replica();
    const { version, faults } = await put(priced(20).replace("creditPrice: 20", "colour: red"), 0);
    expect(version).toBeUndefined();
    expect(faults.map(({ path }) => path)).toContain("models[0].creditPrice");
    expect(await price()).toBe(20);
    expect((await client.listVersions({})).versions).toEqual([]);
  });

  test("of two operators who changed the same version, the second is refused", async () => {
    const one = await replica();
    const other = await replica();
    const both = await Promise.allSettled([one.put(priced(30), 0), other.put(priced(40), 0)]);
    const refused = both.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(1);
    expect(refused[0]).toMatchObject({ reason: { reason: ErrorReason.STATE_CONFLICT } });
    await expect(one.put(priced(50), 0)).rejects.toThrow("Another version of the catalog");
    expect((await one.client.listVersions({})).versions).toHaveLength(2);
  });

  test("a replica that has not looked tells the newest text with its number, and compares with it", async () => {
    const one = await replica();
    const other = await replica();
    await one.put(priced(30), 0);
    const told = await other.client.getText({});
    expect(told).toMatchObject({ yaml: priced(30), newestNumber: 1, version: { number: 1 } });
    await one.put(priced(40), 1);
    expect((await other.client.checkDraft({ yaml: priced(40) })).changes).toEqual([]);
    expect((await other.put(priced(50), 2)).version?.number).toBe(3);
  });

  test("a repeat of an act makes no second version, and another act of its name none at all", async () => {
    const { client, put } = await replica();
    const operationId = "the same";
    const first = await put(priced(30), 0, { operationId });
    const again = await put(priced(30), 0, { operationId });
    expect(again).toMatchObject({ replayed: true, version: { number: 1 } });
    expect(first.replayed).toBe(false);
    await expect(put(priced(31), 0, { operationId })).rejects.toMatchObject({
      reason: ErrorReason.OPERATION_MISMATCH,
    });
    expect((await client.getText({})).newestNumber).toBe(1);
  });

  test("a comment alone is a version too, and no new snapshot", async () => {
    const { client, put } = await replica();
    const { snapshot } = await client.getSnapshot({});
    await put(priced(20, "# why"), 0);
    expect((await client.getSnapshot({})).snapshot).toBe(snapshot);
    const text = await client.getText({});
    expect(text).toMatchObject({ yaml: priced(20, "# why"), version: { number: 1 } });
  });

  test("come in pages", async () => {
    const { client, put } = await replica();
    for (const [number, credits] of [30, 40, 50].entries()) await put(priced(credits), number);
    const page = await client.listVersions({ pageSize: 2 });
    expect(page.versions.map(({ number }) => number)).toEqual([3, 2]);
    const rest = await client.listVersions({ pageSize: 2, pageToken: page.nextPageToken });
    expect(rest.versions.map(({ number }) => number)).toEqual([1, 0]);
    expect(rest.nextPageToken).toBe("");
  });
});

test("a new file with a key can be named by the catalog file alone", async () => {
  const upstream = (keyFile: string) => `
upstreams:
  main: { protocol: openai, baseUrl: "http://127.0.0.1:9", apiKeyFile: ${keyFile} }
models: [{ id: voice-1, kind: speech, upstream: main, voices: [a], pricing: { usdMicrosPerMillionCharacters: 1 } }]
`;
  await writeFile(file, upstream("/keys/main"));
  const { client, put } = await replica();
  const { faults } = await put(upstream("/data/admin-token"), 0);
  expect(faults.map(({ path }) => path)).toEqual(["upstreams.main.apiKeyFile"]);
  expect((await client.checkDraft({ yaml: upstream("/x") })).faults).toHaveLength(1);
  expect((await put(`${upstream("/keys/main")}# a comment`, 0)).faults).toEqual([]);
  // A version that was in force may be in force again.
  await put(priced(20), 1);
  expect((await put(upstream("/keys/main"), 2)).faults).toHaveLength(1);
  expect((await put(1, 2)).faults).toEqual([]);
});

describe.skipIf(noCertificates !== undefined)("a version with a certificate", () => {
  let certificates: CertificateFolder;
  let certificate: string;
  beforeAll(async () => {
    certificates = await certificateFolder();
    certificate = (await (await certificates.authority()).issueSigner("Example Studio")).cert;
  });
  afterAll(() => certificates[Symbol.asyncDispose]());
  const signed = (key: string) =>
    `contentCredentials: { certificate: ${JSON.stringify(certificate)}, ${key} }${priced(20)}`;

  test("names a file with its key only where what is in force does", async () => {
    const own = signed("keyFile: /keys/signing.key");
    await writeFile(file, own);
    const { client, put } = await replica();
    const other = signed("keyFile: /etc/tls/server.key");
    const { faults } = await put(other, 0);
    expect(faults.map(({ path }) => path)).toEqual(["contentCredentials.keyFile"]);
    expect((await client.checkDraft({ yaml: other })).faults).toHaveLength(1);
    expect((await put(`${own}# a comment`, 0)).faults).toEqual([]);
    expect((await put(signed("keyEnv: SIGNING_KEY"), 1)).faults).toEqual([]);
  });

  test("starts when the certificate has ended, and none that has ended is put in force", async () => {
    const first = await replica();
    await first.put(signed("keyEnv: SIGNING_KEY"), 0);
    const later = await replica({ nowMs: Date.now() + 3 * 24 * 3_600_000 });
    const { snapshot } = await later.client.getSnapshot({});
    expect(snapshot?.contentCredentials?.keyName).toBe("SIGNING_KEY");
    const { faults } = await later.put(signed("keyEnv: OTHER_KEY"), 1);
    expect(faults.map(({ path }) => path)).toEqual(["contentCredentials.certificate"]);
    expect((await later.put(priced(30), 1)).faults).toEqual([]);
  });
});

test("where a file is the master, it can be read and not changed", async () => {
  const { client, price, put } = await replica({ isStored: false });
  expect(await client.getText({})).toMatchObject({ yaml: priced(20), isEditable: false });
  await expect(client.getText({ number: 1 })).rejects.toMatchObject({
    reason: ErrorReason.OBJECT_NOT_FOUND,
  });
  expect((await client.listVersions({})).versions).toEqual([]);
  await expect(put(priced(30), 0)).rejects.toThrow("A file is the master of this catalog");
  expect(await price()).toBe(20);
});

test("a version keeps the workflow files that it was put in force with", async () => {
  const workflow = (node: string) =>
    JSON.stringify({ 3: { class_type: node, inputs: { text: "", lyrics: "", seed: 1 } } });
  const comfy = (name: string) => `
upstreams: { gpu: { protocol: comfyui, baseUrl: "http://127.0.0.1:9" } }
models:
  - id: music-1
    kind: music
    upstream: gpu
    creditPrice: 1
    call: { workflow: ${name}, input: { "3.text": "\${description}", "3.lyrics": "\${lyrics}", "3.seed": "\${seed}" }, output: "3" }
`;
  await mkdir(join(folder, "more"));
  await writeFile(join(folder, "more/song.json"), workflow("Old"));
  const { client, put } = await replica();
  const graph = async () =>
    (await client.getSnapshot({})).snapshot?.models[0]?.calls[0]?.workflow ?? "";
  expect((await put(comfy("more/song.json"), 0)).faults).toEqual([]);
  expect(await graph()).toContain("Old");
  await writeFile(join(folder, "more/song.json"), workflow("New"));
  await put(comfy("more/song.json"), 1);
  expect(await graph()).toContain("New");
  await put(1, 2);
  expect(await graph()).toContain("Old");
});
