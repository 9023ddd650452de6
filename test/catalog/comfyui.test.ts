import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { fill } from "#kit/template/template.ts";
import { ModelKind, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { toCatalogEntry } from "../../gateway/models.ts";
import { readCatalogFile } from "../../services/catalog/file.ts";
import { parseCatalog } from "../../services/catalog/parse.ts";

const file = fileURLToPath(new URL("../../deploy/catalogs/comfyui.yaml", import.meta.url));
const { text = "", workflows } = await readCatalogFile(file);
const { snapshot, faults } = parseCatalog(text, workflows);
if (!snapshot) throw new Error(JSON.stringify(faults));
const view = viewOf(snapshot);

test("the catalog for ComfyUI has a picture, a film and a song, each with its workflow", () => {
  expect(view.activeModels.map(({ id, kind, isDefault }) => [id, kind, isDefault])).toEqual([
    ["sdxl", ModelKind.IMAGE, true],
    ["wan-2-1-i2v", ModelKind.VIDEO, true],
    ["ace-step-1", ModelKind.MUSIC, true],
  ]);
  for (const { calls } of view.activeModels) {
    expect(calls.map(({ workflow }) => Object.keys(JSON.parse(workflow)).length > 5)).toEqual([
      true,
    ]);
  }
  const [upstream] = Object.values(snapshot.upstreams);
  expect(upstream).toMatchObject({ protocol: UpstreamProtocol.COMFYUI, maxConcurrent: 1 });
});

test("each of its rows has frames that Wan can make, each ratio a size that it can", () => {
  const model = view.findModel("wan-2-1-i2v");
  const entry = toCatalogEntry(model, snapshot);
  const videoOptions = entry.videoOptions as { durationSeconds: number }[];
  const availableAspectRatios = entry.availableAspectRatios as string[];
  const input = JSON.parse(model.calls[0]?.input ?? "{}");
  const graph = JSON.parse(model.calls[0]?.workflow ?? "{}");
  for (const { durationSeconds: seconds } of videoOptions) {
    for (const aspectRatio of availableAspectRatios) {
      const filled = fill(input, { prompt: "p", seed: 1, seconds, aspectRatio });
      const kept = graph["50"].inputs;
      const {
        "50.length": length,
        "50.width": width = kept.width,
        "50.height": height = kept.height,
      } = filled as Record<string, number>;
      expect(length).toBe(16 * seconds + 1);
      expect([width % 16, height % 16]).toEqual([0, 0]);
    }
  }
});
