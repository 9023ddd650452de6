import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { type CatalogRead, catalogReader, readCatalogFile, watchCatalog } from "./file.ts";
import { maxWorkflowBytes, maxWorkflows } from "./limits.ts";
import { parseCatalog } from "./parse.ts";
import { checkCatalogFile } from "./source.ts";

const shipped = fileURLToPath(new URL("../../deploy/catalogs", import.meta.url));
let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-workflows-"));
  path = join(folder, "comfyui.yaml");
  for (const name of ["comfyui.yaml", "sdxl.json", "wan.json", "ace-step.json"]) {
    await cp(join(shipped, name), join(folder, name));
  }
});
afterEach(() => rm(folder, { recursive: true }));

const call = (workflow: string) => ({
  workflow,
  output: "9",
  input: { "6.text": "${prompt}", "3.seed": "${seed}" },
});
/** A catalog of image models, one for each call. */
async function write(calls: object[], protocol = "comfyui") {
  const models = calls.map((call, i) => ({
    ...{ id: `model-${i}`, kind: "image", upstream: "gpu", creditPrice: 1, maxImages: 1, call },
  }));
  const upstreams = { gpu: { protocol, baseUrl: "http://127.0.0.1:8188" } };
  await writeFile(path, JSON.stringify({ upstreams, models }));
}
async function faults(...calls: object[]) {
  await write(calls);
  return (await checkCatalogFile(path)).faults;
}

describe("workflow files beside a catalog", () => {
  test("are read with it, and are part of its snapshot, without their spaces", async () => {
    expect(await checkCatalogFile(path)).toMatchObject({ faults: [], models: 3 });
    const { text = "", workflows } = await readCatalogFile(path);
    const { snapshot } = parseCatalog(text, workflows);
    const calls = snapshot?.models.flatMap(({ calls }) => calls) ?? [];
    expect(calls.map(({ mode, model, output }) => [mode, model, output])).toEqual([
      ["", "", "9"],
      ["i2v", "", "58"],
      ["", "", "59"],
    ]);
    const wan = workflows?.get("wan.json")?.text ?? "";
    expect(calls[1]?.workflow).toBe(JSON.stringify(JSON.parse(wan)));
  });

  test("change its version where they change in what they say", async () => {
    const version = async () => (await checkCatalogFile(path)).version;
    const before = await version();
    const file = join(folder, "sdxl.json");
    const { text = "" } = (await readCatalogFile(path)).workflows?.get("sdxl.json") ?? {};
    await writeFile(file, JSON.stringify(JSON.parse(text)));
    expect(await version()).toBe(before);
    await writeFile(file, text.replace('"steps": 30', '"steps": 31'));
    expect(await version()).not.toBe(before);
  });

  test("are looked at with it: a change of one is judged once, when it has settled", async () => {
    const seen: CatalogRead[] = [];
    const known = await readCatalogFile(path);
    const clock = manualClock();
    const watch = watchCatalog({
      read: catalogReader(path),
      clock,
      known,
      changed: (read) => seen.push(read),
    });
    for (let i = 0; i < 3; i++) await watch.look();
    expect(seen).toEqual([]);
    await writeFile(join(folder, "wan.json"), "{}");
    for (let i = 0; i < 4; i++) await watch.look();
    expect(seen.map(({ workflows }) => workflows?.get("wan.json"))).toEqual([{ text: "{}" }]);
    await rm(join(folder, "wan.json"));
    for (let i = 0; i < 4; i++) await watch.look();
    expect(seen[1]?.workflows?.get("wan.json")).toEqual({
      fault: "the file cannot be read (ENOENT)",
    });
  });

  test.each([
    ["../sdxl.json"],
    ["/etc/sdxl.json"],
    ["a/../../sdxl.json"],
    ["..data/sdxl.json"],
    ["sdxl.yaml"],
    ["a\\..\\sdxl.json"],
  ])("%s, out of its folder or of another kind, is a fault and is not read", async (name) => {
    expect(await faults(call(name))).toEqual([
      { path: "models[0].call.workflow", message: expect.stringMatching(/beside the catalog/) },
    ]);
    expect((await readCatalogFile(path)).workflows).toBeUndefined();
  });

  test("faults have their paths: a file that lacks, one too large, one that is no workflow", async () => {
    await writeFile(join(folder, "large.json"), " ".repeat(maxWorkflowBytes + 1));
    await writeFile(join(folder, "editor.json"), JSON.stringify({ nodes: [], links: [] }));
    const found = await faults(call("none.json"), call("large.json"), call("editor.json"));
    expect(found.map(({ path }) => path)).toEqual(
      [0, 1, 2].map((index) => `models[${index}].call.workflow`),
    );
    expect(found.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^the file cannot be read \(ENOENT\)/),
      expect.stringMatching(/^the file has more than 262144 bytes/),
      expect.stringMatching(/Export \(API\)/),
    ]);
  });

  test("so do a call of the other shape, an unknown placeholder, and a place that it lacks", async () => {
    const wrong = { ...call("sdxl.json").input, "6.txt": "${prompt}", "7.text": "${promt}" };
    expect(await faults({ ...call("sdxl.json"), input: wrong })).toEqual([
      { path: 'models[0].call.input["7.text"]', message: expect.stringMatching(/names promt/) },
      { path: 'models[0].call.input["6.txt"]', message: expect.stringMatching(/no input/) },
    ]);
    const model = { model: "owner/name", input: { p: "${prompt}" }, output: "images[*]" };
    expect(await faults(model)).toMatchObject([
      { path: "models[0].call.workflow", message: expect.stringMatching(/^is required by/) },
      { path: "models[0].call.model", message: expect.stringMatching(/another protocol/) },
    ]);
    await write([{ ...call("sdxl.json"), output: "images[*].url" }], "fal");
    const { faults: atFal } = await checkCatalogFile(path);
    expect(atFal.map(({ path }) => path)).toEqual([
      "models[0].call.model",
      "models[0].call.workflow",
    ]);
  });

  test("more than a catalog may have are faults, not read", async () => {
    const names = Array.from({ length: maxWorkflows + 1 }, (_, i) => `w${i}.json`);
    for (const name of names) await cp(join(folder, "sdxl.json"), join(folder, name));
    expect(await faults(...names.map(call))).toEqual([
      {
        path: `models[${maxWorkflows}].call.workflow`,
        message: expect.stringMatching(/at most 100 workflows/),
      },
    ]);
  });
});
