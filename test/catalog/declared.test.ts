import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { parseCatalog } from "../../services/catalog/parse.ts";
import { runOperatorCommand } from "../support/operator-command.ts";

const deploy = new URL("../../deploy/", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, deploy), "utf8");

// biome-ignore lint/suspicious/noExplicitAny: catalogs have parts of every shape.
type Catalog = any;
const written = (name: string): Catalog => parse(read(`catalogs/${name}.yaml`));

/** Catalogs of upstreams whose HTTP they declare, each with the variables of its keys. */
const declared = [
  ["xai", ["XAI_API_KEY"]],
  ["ark", ["ARK_API_KEY"]],
  ["minimax", ["MINIMAX_API_KEY"]],
  ["kling", ["KLING_ACCESS_KEY", "KLING_SECRET_KEY"]],
  ["google", ["GEMINI_API_KEY"]],
  ["bfl", ["BFL_API_KEY"]],
  ["wan", ["DASHSCOPE_API_KEY"]],
  ["runway", ["RUNWAYML_API_SECRET"]],
  ["vidu", ["VIDU_API_KEY"]],
  ["pixverse", ["PIXVERSE_API_KEY"]],
  ["seed-videos", ["XAI_API_KEY", "ARK_API_KEY", "MINIMAX_API_KEY", "DASHSCOPE_API_KEY"]],
] as const;

test.each(declared)(
  "the catalog for %s declares all it calls, and says how to start it",
  (name, keys) => {
    const text = read(`catalogs/${name}.yaml`);
    const { snapshot, faults } = parseCatalog(text);
    expect(faults ?? []).toEqual([]);
    if (!snapshot) return;
    for (const { protocol } of Object.values(snapshot.upstreams)) {
      expect(protocol).toBe(UpstreamProtocol.JOBS);
    }
    const { activeModels } = viewOf(snapshot);
    for (const kind of new Set(activeModels.map((one) => one.kind))) {
      expect(activeModels.filter((one) => one.kind === kind && one.isDefault)).toHaveLength(1);
    }
    expect(text).toContain(`genmesh catalog check deploy/catalogs/${name}.yaml`);
    const given = keys.map((key) => `${key}=…`).join(" ");
    expect(text).toContain(`GENMESH_CATALOG=deploy/catalogs/${name}.yaml ${given} npm start`);
    // YAML 1.2 has no merge keys. Within an input, one would be sent as it stands.
    expect(text).not.toContain("<<:");
  },
);

describe("the catalog of the eight video models", () => {
  const eight = written("seed-videos");
  const demo = parse(read("catalog.yaml")).models.filter((one: Catalog) => one.kind === "video");

  test("has the ids, prices, ratios and references of the demo catalog", () => {
    expect(eight.models).toHaveLength(8);
    const facts = (models: Catalog[]) =>
      models.map(({ id, maxReferences, availableAspectRatios, firstLastFrame, videoOptions }) => ({
        ...{ id, maxReferences, firstLastFrame, ratios: [...availableAspectRatios].sort() },
        prices: videoOptions
          .flatMap(({ durationSeconds, resolution, modes, credits }: Catalog) =>
            modes.map((mode: string) => `${durationSeconds} ${resolution} ${mode} ${credits}`),
          )
          .sort(),
      }));
    const byId = (a: Catalog, b: Catalog) => (a.id < b.id ? -1 : 1);
    expect(facts(eight.models).sort(byId)).toEqual(facts(demo).sort(byId));
  });

  test("is that of its upstreams' own catalogs", () => {
    const own = ["xai", "wan", "ark", "minimax"].map(written);
    const upstreams = Object.assign({}, ...own.map((one) => one.upstreams));
    for (const [name, upstream] of Object.entries(eight.upstreams)) {
      expect(upstream).toEqual(upstreams[name]);
    }
    const models = own.flatMap((one) => one.models);
    for (const { default: _, ...model } of eight.models) {
      expect(models.find((one) => one.id === model.id)).toMatchObject(model);
    }
  });
});

test("faults of a declaration and of its models' calls have their places in the file", () => {
  const catalog = written("xai");
  catalog.upstreams.xai.jobs.poll.get = "videos/${id}";
  catalog.models[0].maxReferences = 1;
  const { faults } = parseCatalog(JSON.stringify(catalog));
  expect(faults?.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    expect.stringMatching(/^upstreams\.xai\.jobs\.poll\.get: must begin with one \//),
    expect.stringMatching(/^models\[0\]\.call\.references: needs maxReferences of at least 2/),
  ]);
});

test("catalog check --requests prints each request that would begin a task, without a key", async () => {
  const file = fileURLToPath(new URL("catalogs/kling.yaml", deploy));
  const words = ["catalog", "check", file, "--requests", "--json"];
  const { code, out } = await runOperatorCommand(words, { KLING_SECRET_KEY: "sk-secret" });
  const { requests } = JSON.parse(out);
  expect([code, out.includes("sk-secret")]).toEqual([0, false]);
  const paths = new Set(requests.map((one: Catalog) => new URL(one.url).pathname));
  expect(paths).toEqual(new Set(["/v1/videos/text2video", "/v1/videos/image2video"]));
  for (const { body } of requests) expect(body.external_task_id).toBe("job_sample");
  const fromOne = requests.find((one: Catalog) => one.body.image !== undefined);
  expect(fromOne.body.image).not.toMatch(/^data:/);
});
