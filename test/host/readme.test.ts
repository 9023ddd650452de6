import { readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkCatalogFile } from "../../services/catalog/index.ts";
import { createProgram } from "../../services/host/cli/program.ts";
import { envToOperatorConfig } from "../../services/host/config.ts";
import { root, startProcess, startRunning, tempFolder } from "./process.ts";

const read = (file: string) => readFileSync(join(root, file), "utf8");
const blocks = (file: string, language: string) =>
  [...read(file).matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))].map(
    (one) => one[1] ?? "",
  );

test("the configuration table names every variable that a process reads, and no other", () => {
  const files = readdirSync(join(root, "services/host")).filter((file) =>
    /^config(?:-[a-z]+)?\.ts$/.test(file),
  );
  const sources = files.map((file) => read(`services/host/${file}`)).join("");
  const names = [...sources.matchAll(/"((?:GENMESH|OTEL)_[A-Z_]+|(?:GRPC_)?PORT|HOST)"/g)];
  const known = new Set(names.map((one) => one[1] ?? ""));
  const cells = [...read("docs/configuration.md").matchAll(/^\| (`[A-Z].*?) \|/gm)];
  const shown = cells.flatMap((one) => [...(one[1] ?? "").matchAll(/`([A-Z_]+)`/g)]);
  expect(new Set(shown.map((one) => one[1]))).toEqual(known);
});

test("every call of curl is one that the curl of Ubuntu 22.04 knows (7.81; --json came with 7.82)", () => {
  const pages = readdirSync(join(root, "docs")).filter((file) => file.endsWith(".md"));
  const texts = ["README.md", ...pages.map((file) => `docs/${file}`), "gateway/openapi.json"];
  const newer = texts.filter((file) => /--json \\?['"$@]/.test(read(file)));
  expect(newer).toEqual([]);
});

test("what promises OpenAI's SDKs says beside it what images.generate needs", () => {
  for (const file of ["README.md", "docs/openai-sdk.md"]) {
    const [before = ""] = read(file).split(/^## /m);
    expect(before).toContain("images.generate");
    expect(before).toContain('default_headers={"Prefer": "wait"}');
  }
});

test("npm says nothing of the Node that the shell has: the install brings another", () => {
  expect(read(".npmrc")).toMatch(/^loglevel=error$/m);
});

test("the catalog of the example has no faults", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "my-catalog.yaml");
  await writeFile(file, blocks("README.md", "yaml")[0] ?? "");
  expect(await checkCatalogFile(file)).toMatchObject({ faults: [], models: 2 });
});

test("the operator's calls are such as the command knows", async () => {
  const calls = [
    ...["README.md", "docs/running.md", "docs/media.md"]
      .flatMap((file) => blocks(file, "sh"))
      .join("")
      .matchAll(/^npx genmesh (.+)$/gm),
  ].map((one) => one[1] ?? "");
  expect(calls.length).toBeGreaterThan(6);
  for (const call of calls) {
    const words = [...call.matchAll(/"([^"]*)"|(\S+)/g)].map((one) => one[1] ?? one[2] ?? "");
    const config = envToOperatorConfig({ GENMESH_DATA_DIR: "/nowhere" });
    // Exit code 2 means invalid arguments. Here it does not matter that there is no server.
    const code = await createProgram({ config, out() {}, err() {} }).run(words);
    expect({ call, wordsAreOff: code === 2 }).toEqual({ call, wordsAreOff: false });
  }
});

test("the shell lines about media do what is said of them", { timeout: 300_000 }, async () => {
  await using folder = await tempFolder();
  const key = "gm_readme_0123456789abcdef";
  const state = { GENMESH_DATA_DIR: join(folder.path, "state"), GENMESH_BOOTSTRAP_API_KEY: key };
  await using mesh = await startRunning({ ...state, GENMESH_LOG_LEVEL: "warn" });
  const [picture = ""] = blocks("README.md", "sh").filter((one) => one.includes("fox.png"));
  // Both pages show the same images. Only the page with all of them makes them.
  const media = blocks("docs/media.md", "sh");
  const shown = media.join("").split("\n");
  expect(picture.split("\n").filter((line) => !shown.includes(line))).toEqual([]);
  const command = `npx() { shift; node ${join(root, "bin/genmesh.js")} "$@"; }`;
  const script = ["set -eu", command, ...media].join("\n");
  const here = script.replaceAll("http://127.0.0.1:8080/v1", mesh.baseUrl);
  const env = { KEY: key, GENMESH_BASE_URL: mesh.baseUrl };
  await using shell = startProcess("bash", ["-c", here], { cwd: folder.path, env });
  const { code } = await shell.ended;
  expect({ code, stderr: shell.stderr() }).toMatchObject({ code: 0 });
  const begins = async (file: string) => {
    const bytes = await readFile(join(folder.path, file));
    return { size: bytes.length, begin: bytes.toString("latin1", 0, 8) };
  };
  for (const picture of ["fox.png", "lighthouse.png"]) {
    expect((await begins(picture)).begin).toBe("\x89PNG\r\n\x1a\n");
  }
  const film = await begins("pier.mp4");
  expect(film.begin).toMatch(/ftyp$/);
  expect(await begins("first-kilobyte")).toEqual({ size: 1024, begin: film.begin });
  for (const sound of ["hello.mp3", "song.mp3"]) {
    expect((await begins(sound)).begin).toMatch(/^\xff[\xe0-\xff]/);
  }
  expect(shell.stdout()).toMatch(/"progress":0\n(.*\n)*"progress":100\n/);
  expect(shell.stdout()).toMatch(/"status":"(queued|running)"/);
});
