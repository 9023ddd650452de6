import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { fill } from "#kit/template/template.ts";
import { ModelKind, ReferenceTransport } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { toCatalogEntry } from "../../gateway/models.ts";
import { parseCatalog } from "../../services/catalog/parse.ts";

const load = (path: string) => {
  const file = new URL(`../../deploy/${path}`, import.meta.url);
  const { snapshot, faults } = parseCatalog(readFileSync(file, "utf8"));
  if (!snapshot) throw new Error(JSON.stringify(faults));
  return { snapshot, view: viewOf(snapshot) };
};
const shipped = load("catalog.yaml");
const fal = load("catalogs/fal.yaml");
const replicate = load("catalogs/replicate.yaml");

const rowsOf = ({ view, snapshot }: typeof fal, id: string) =>
  (toCatalogEntry(view.findModel(id), snapshot).videoOptions ?? []) as {
    durationSeconds: number;
    resolution: string;
    modes: string[];
    credits: number;
  }[];

describe.each([
  ["fal", fal],
  ["Replicate", replicate],
])("the catalog for %s", (_, { view, snapshot }) => {
  test("has pictures, videos and music, each by default and with its calls", () => {
    for (const kind of [ModelKind.IMAGE, ModelKind.VIDEO, ModelKind.MUSIC]) {
      expect(view.activeModels.filter((one) => one.kind === kind && one.isDefault)).toHaveLength(1);
    }
    for (const { calls } of view.activeModels) expect(calls.length).toBeGreaterThan(0);
    const [upstream] = Object.values(snapshot.upstreams);
    expect(upstream?.references).toBe(ReferenceTransport.UPLOAD);
  });

  test("says of every row what its model is called with", () => {
    const videos = view.activeModels.filter(({ kind }) => kind === ModelKind.VIDEO);
    for (const model of videos) {
      for (const row of rowsOf({ view, snapshot }, model.id)) {
        for (const mode of row.modes) {
          const call = model.calls.find((one) => one.mode === mode);
          const values = { prompt: "p", seconds: row.durationSeconds, resolution: row.resolution };
          const input = fill(JSON.parse(call?.input ?? "null"), { ...values, aspectRatio: "auto" });
          expect(input).toMatchObject({ prompt: "p" });
          expect(Number((input as { duration: string }).duration)).toBe(row.durationSeconds);
        }
      }
    }
  });
});

test("the eight video models at fal have no row, reference or shape that the API's table lacks", () => {
  const videos = shipped.view.activeModels.filter(({ kind }) => kind === ModelKind.VIDEO);
  expect(videos).toHaveLength(8);
  for (const { id } of videos) {
    const published = rowsOf(shipped, id);
    for (const row of rowsOf(fal, id)) {
      for (const mode of row.modes) {
        const { durationSeconds, resolution, credits } = row;
        const isOne = published.some(
          (one) =>
            one.durationSeconds === durationSeconds &&
            one.resolution === resolution &&
            one.credits === credits &&
            one.modes.includes(mode),
        );
        expect({ id, row, mode, isOne }).toMatchObject({ isOne: true });
      }
    }
    const whole = toCatalogEntry(shipped.view.findModel(id), shipped.snapshot);
    const entry = toCatalogEntry(fal.view.findModel(id), fal.snapshot);
    expect(Number(entry.maxReferences)).toBeLessThanOrEqual(Number(whole.maxReferences));
    expect(whole.availableAspectRatios).toEqual(
      expect.arrayContaining(entry.availableAspectRatios as string[]),
    );
  }
});

test("faults of a call for fal or Replicate are found when a catalog is loaded", () => {
  const call = { input: { prompt: "${prompt}" }, output: "output[*]" };
  const faultsOf = (protocol: string, more: object) => {
    const image = {
      ...{ id: "i", kind: "image", upstream: "up", creditPrice: 1, maxImages: 1 },
      call: { ...call, model: "owner/name" },
      ...more,
    };
    const upstreams = {
      up: { protocol, baseUrl: "https://up.test" },
      second: { protocol, baseUrl: "https://second.test", references: "inline" },
      other: { protocol: "openai", baseUrl: "https://other.test" },
    };
    const { faults = [] } = parseCatalog(JSON.stringify({ upstreams, models: [image] }));
    return faults.map(({ path, message }) => `${path}: ${message}`);
  };
  for (const protocol of ["fal", "replicate"]) {
    expect(faultsOf(protocol, {})).toEqual([]);
    expect(faultsOf(protocol, { fallbackUpstreams: ["second"] })).toEqual([]);
    expect(faultsOf(protocol, { fallbackUpstreams: ["other"] })).toEqual([
      expect.stringMatching(/^models\[0\]\.fallbackUpstreams\[0\]: .*openai/),
    ]);
    expect(faultsOf(protocol, { call: undefined })).toEqual([
      expect.stringMatching(/^models\[0\]\.call: is required by its upstream/),
    ]);
    expect(faultsOf(protocol, { maxImages: 2 })[0]).toMatch(/places no count/);
    expect(faultsOf(protocol, { call: { ...call, model: "alone" } })[0]).toMatch(
      /^models\[0\]\.call\.model: must be owner/,
    );
  }
  const version = { ...call, model: `owner/name:${"0".repeat(64)}` };
  expect(faultsOf("replicate", { call: version })).toEqual([]);
  expect(faultsOf("replicate", { call: { ...call, model: "owner/name/below" } })).toHaveLength(1);
  for (const output of ["images[*].url", "outputs[*]"]) {
    expect(faultsOf("replicate", { call: { ...version, output } })).toEqual([
      "models[0].call.output: must begin with output, where Replicate puts what a model made (line 1, column 343)",
    ]);
  }
  for (const output of ["output", "output.image", "output[0]"]) {
    expect(faultsOf("replicate", { call: { ...version, output } })).toEqual([]);
  }
  expect(faultsOf("fal", { call: version })).toHaveLength(1);
  expect(faultsOf("fal", { call: { ...call, model: "owner/name/below" } })).toEqual([]);
});
