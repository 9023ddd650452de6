import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CatalogView, LiveCatalog } from "#common/agreements/catalog-client.ts";
import { randomIds } from "#kit/base/ids.ts";
import { readInTurns } from "#kit/base/in-turns.ts";
import { readOrigin } from "#kit/provenance/index.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import { systemClock } from "#kit/time/clock.ts";
import {
  type CertificateFolder,
  certificateFolder,
  noCertificates,
  type Pair,
} from "../../../test/support/certificates.ts";
import { sampleMp4, samplePng } from "../../upstreams/media/samples.fixture.ts";
import type { JobEvents } from "../events.ts";
import { noFailPoints } from "../fail-points.ts";
import type { Job } from "../jobs/job.ts";
import type { JobStore } from "../jobs/store.ts";
import { createMarks } from "./marks.ts";
import { createStoredOutputs } from "./stored-outputs.ts";

let folder: CertificateFolder;
let pair: Pair;
let tempFolder: string;
beforeAll(async () => {
  if (noCertificates !== undefined) return;
  folder = await certificateFolder();
  pair = await (await folder.authority()).issueSigner("Example Studio");
  tempFolder = await mkdtemp(join(tmpdir(), "genmesh-marks-"));
});
afterAll(async () => {
  await folder?.[Symbol.asyncDispose]();
  if (tempFolder) await rm(tempFolder, { recursive: true });
});

const job = (fence: number) =>
  ({
    ...{ jobId: "job_a", fence, state: "running", outputs: [], upstreamIndex: 0 },
    spec: { upstreams: [{ protocol: 1 }] },
  }) as unknown as Job;

function marksIn(temp: string) {
  const events = { marked: vi.fn(), markFailed: vi.fn() };
  const contentCredentials = { certificate: pair.cert, keyName: "KEY" };
  const view = { snapshot: { contentCredentials } } as unknown as CatalogView;
  const catalog: Pick<LiveCatalog, "current"> = { current: () => view };
  const marking = { key: () => pair.key, tempFolder: temp, version: "1.2.3" };
  return { events, marks: createMarks({ clock: systemClock, catalog, events, marking }) };
}

const manifestsIn = (bytes: Buffer) => bytes.toString("latin1").split("c2pa.claim.v2\0").length - 1;

describe.skipIf(noCertificates !== undefined)("a worker's marks", () => {
  test("are made once for each attempt, of the upstream's own bytes", async () => {
    const { marks } = marksIn(tempFolder);
    const blobs = new Map<string, Buffer>();
    const put = async (key: string, source: AsyncIterable<Uint8Array>) => {
      const bytes = await readInTurns(source);
      blobs.set(key, bytes);
      return { sizeBytes: bytes.length, sha256: "" };
    };
    const attempt = (fence: number) =>
      createStoredOutputs(job(fence), new AbortController().signal, {
        clock: systemClock,
        ids: randomIds,
        store: { find: async () => job(2) } as unknown as JobStore,
        blobs: {
          put,
          delete: async (key: string) => void blobs.delete(key),
        } as unknown as BlobStore,
        events: { trouble: vi.fn() } as unknown as JobEvents,
        failPoints: noFailPoints,
        marks,
      });
    const png = await samplePng();
    const mp4 = sampleMp4();
    // The first attempt dies here, and cleans nothing up. The second gets the same files from the upstream.
    await attempt(1).store(png, "image/png");
    const second = attempt(2);
    await second.store(png, "image/png");
    await second.store(Readable.from([mp4]), "video/mp4");
    const [image, film] = [...second.keys].map((key) => blobs.get(key) ?? Buffer.alloc(0));
    expect([...second.keys]).toEqual(Array(2).fill(expect.stringMatching(/^outputs\/job_a\/2-/)));
    expect(image && manifestsIn(image)).toBe(1);
    expect(film && manifestsIn(film)).toBe(1);
    await second.discard();
    // The first one's file is left to the collection, because no job has it.
    expect([...blobs.keys()]).toEqual([expect.stringMatching(/^outputs\/job_a\/1-/)]);
  });

  test("leave a video as it came where the disk takes no copy of it", async () => {
    const { marks, events } = marksIn(join(tempFolder, "missing"));
    const mp4 = sampleMp4({ frameBytes: 5_000 });
    const pieces = Array.from({ length: Math.ceil(mp4.length / 10_000) }, (_, at) =>
      mp4.subarray(at * 10_000, (at + 1) * 10_000),
    );
    const made = await marks.mark(Readable.from(pieces), "video/mp4", job(1));
    expect((await readInTurns(made as Readable)).equals(mp4)).toBe(true);
    expect(events.markFailed.mock.calls.map(([, fault]) => fault)).toEqual(["disk"]);
    expect(events.marked).not.toHaveBeenCalled();
  });

  test("end with the error of a video that breaks off", async () => {
    const { marks, events } = marksIn(tempFolder);
    async function* broken() {
      yield sampleMp4().subarray(0, 5_000);
      throw new Error("the upstream broke off");
    }
    const made = await marks.mark(Readable.from(broken()), "video/mp4", job(1));
    await expect(readInTurns(made as Readable)).rejects.toThrow("the upstream broke off");
    expect(events.markFailed).not.toHaveBeenCalled();
  });

  test("say of a video what the upstream's video does not", async () => {
    const { marks, events } = marksIn(tempFolder);
    const made = await marks.mark(Readable.from([sampleMp4()]), "video/mp4", job(1));
    const origin = readOrigin(await readInTurns(made as Readable), "video/mp4");
    expect(origin).toMatchObject({ generator: "genmesh 1.2.3", madeByAi: true });
    expect(events.marked.mock.calls.map(([, outcome]) => outcome)).toEqual(["signed"]);
  });
});
