import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { parseCatalog } from "../../catalog/parse.ts";
import { checkRequest } from "./index.ts";

const file = new URL("../../../deploy/catalog.yaml", import.meta.url);
const { snapshot } = parseCatalog(readFileSync(file, "utf8"));
if (!snapshot) throw new Error("the shipped catalog is broken");
const view = viewOf(snapshot);

describe("a model that is called by a template", () => {
  const call = (name: string, placed: string[]) => ({
    model: `owner/${name}`,
    input: { prompt: "${prompt}", images: placed },
    output: "video.url",
  });
  const [first, last] = ["${references[0]}", "${references[1]}"];
  const film = {
    ...{ kind: "video", upstream: "up", maxReferences: 2, firstLastFrame: true },
    availableAspectRatios: ["auto"],
    videoOptions: [{ durationSeconds: 5, resolution: "480p", modes: ["t2v", "i2v"], credits: 1 }],
  };
  const own = { ...film, id: "own" };
  const both = { ...film, id: "both" };
  const t2v = call("from-text", []);
  const { snapshot: called, faults } = parseCatalog(
    JSON.stringify({
      upstreams: { up: { protocol: "fal", baseUrl: "https://up.test" } },
      models: [
        {
          ...own,
          call: { t2v, i2v: call("from-one", [first]), firstLast: call("from-two", [first, last]) },
        },
        { ...both, call: { t2v, i2v: call("from-any", [first, last]) } },
        {
          ...{ id: "picture", kind: "image", upstream: "up", creditPrice: 1, maxImages: 1 },
          call: { ...call("painter", []), output: "images[*].url" },
        },
      ],
    }),
  );
  if (!called) throw new Error(JSON.stringify(faults));

  test.each([
    ["own", 0, "from-text"],
    ["own", 1, "from-one"],
    ["own", 2, "from-two"],
    ["both", 1, "from-any"],
    ["both", 2, "from-any"],
  ])("a job of %s with %d references keeps the call %s", (model, references, name) => {
    const referenceFileIds = ["file_a", "file_b"].slice(0, references);
    const body = { model, prompt: "waves", ...(references > 0 && { referenceFileIds }) };
    const { spec } = checkRequest("video", body, viewOf(called), {});
    expect(spec.call?.model).toBe(`owner/${name}`);
  });

  test("a picture has one call, and what is called in another way has none", () => {
    const { spec } = checkRequest(
      "image",
      { model: "picture", prompt: "a boat" },
      viewOf(called),
      {},
    );
    expect(spec.call).toMatchObject({ mode: "", model: "owner/painter" });
    expect(
      "call" in checkRequest("image", { model: "image-1", prompt: "a boat" }, view, {}).spec,
    ).toBe(false);
  });
});
