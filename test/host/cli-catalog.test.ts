import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createProgram } from "../../services/host/cli/program.ts";
import { envToOperatorConfig } from "../../services/host/config.ts";
import { tempFolder } from "./process.ts";

/** Runs the command in this process. There is no server. */
async function genmesh(args: readonly string[]) {
  let out = "";
  let err = "";
  const program = createProgram({
    config: envToOperatorConfig({ GENMESH_DATA_DIR: "/nowhere" }),
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
  });
  const code = await program.run(args);
  return { code, out, err };
}

describe("catalog check", () => {
  test("needs no server and no token", async () => {
    const call = ["catalog", "check", "deploy/catalog.yaml"];
    const { code, out } = await genmesh(call);
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/^deploy\/catalog\.yaml: \d+ models, no faults\n$/),
    });
  });

  test("names every fault by its path, and exits 1", async () => {
    await using folder = await tempFolder();
    const file = join(folder.path, "c.yaml");
    await writeFile(file, "upstreams: { s: { protocol: builtin, colour: red } }\nmodels: []\n");
    const { code, out } = await genmesh(["catalog", "check", file]);
    expect(code).toBe(1);
    expect(out).toMatch(/^upstreams\.s(\.colour)?: .+$/m);
    expect(out).toMatch(/\d+ faults?\n$/);
    const json = await genmesh(["catalog", "check", file, "--json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({
      ok: false,
      models: 0,
      faults: expect.arrayContaining([{ path: "models", message: expect.any(String) }]),
    });
  });
});

describe("catalog explain", () => {
  const place = "models(chat).pricing.longInput.aboveInputTokens";

  test("says what a key means, where it stands, and which values it takes", async () => {
    const { code, out } = await genmesh([
      "catalog",
      "explain",
      "pricing.longInput.aboveInputTokens",
    ]);
    expect(code).toBe(0);
    expect(out.split("\n")).toEqual([
      place,
      "  The row counts where the input has more tokens than this.",
      expect.stringMatching(/^ {2}a whole number from 1 to \d+; required$/),
      "",
      "",
    ]);
  });

  test("with --json as objects, with the default", async () => {
    const { out } = await genmesh(["catalog", "explain", "idleTimeoutMs", "--json"]);
    expect(JSON.parse(out)).toContainEqual({
      place: "upstreams(openai).idleTimeoutMs",
      description: "The silence after which a stream counts as cut, in milliseconds.",
      values: expect.stringMatching(/^a whole number from 1 to \d+$/),
      required: false,
      default: 120_000,
    });
  });

  test("without a key it lists those of the file itself", async () => {
    const { out } = await genmesh(["catalog", "explain"]);
    const keys = ["developerPrompt", "upstreams", "pools", "models", "contentCredentials"];
    expect(out.match(/^\w+$/gm)).toEqual(keys);
  });

  test("a key that no catalog has is told by its name", async () => {
    const { code, err } = await genmesh(["catalog", "explain", "colour"]);
    expect(code).toBe(2);
    expect(err).toContain("No key of a catalog file is called colour.");
  });
});
