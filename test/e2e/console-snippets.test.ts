import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  codeOf,
  type Language,
  type Snippet,
} from "../../gateway/console/app/screens/playground/snippets.ts";
import type { Caller } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const run = promisify(execFile);
const hasJq = await run("jq", ["--version"]).then(
  () => true,
  () => false,
);
const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));

let caller: Caller;
beforeAll(async () => {
  caller = await world.caller({ credits: 1_000n });
  vi.stubGlobal("location", { origin: new URL(world.baseUrl).origin });
});
afterAll(() => vi.unstubAllGlobals());

/** Runs the code of a request in a new folder. Gives the files that it made, by their names. */
async function madeBy(language: Language, snippet: Snippet): Promise<Map<string, Buffer>> {
  const cwd = await mkdtemp(join(tmpdir(), "genmesh-snippet-"));
  try {
    await symlink(modules, join(cwd, "node_modules"));
    const code = codeOf(language, snippet).replace("export KEY=gm_…", "");
    const [program, args] =
      language === "curl"
        ? ["sh", ["-ec", code]]
        : [process.execPath, ["--input-type=module-typescript", "-e", code]];
    await run(program as string, args as string[], {
      cwd,
      env: { ...process.env, KEY: caller.key },
    });
    const names = (await readdir(cwd)).filter((name) => name !== "node_modules");
    const files = names.map(async (name) => [name, await readFile(join(cwd, name))] as const);
    return new Map(await Promise.all(files));
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

const image: Snippet = {
  path: "/images/generations",
  body: { model: "image-1", prompt: "It's a \\ fox", aspectRatio: "1:1" },
};
const music: Snippet = {
  path: "/music/generations",
  body: { model: "music-1", mode: "instrumental", title: "Harbour lights" },
};
const speech: Snippet = {
  path: "/audio/speech",
  body: {
    model: "speech-1",
    input: "Hello.",
    voice: "alloy",
    language: "en",
    response_format: "wav",
  },
};

/** The first bytes of files, by their endings. */
const beginnings: Record<string, RegExp> = { png: /^.PNG/s, mp3: /^(ID3|\xff)/, wav: /^RIFF/ };

describe("the playground's code of a request makes what it says", () => {
  test.for<{ language: Language; snippet: Snippet; name: RegExp }>([
    { language: "typescript", snippet: image, name: /^image-1\.png$/ },
    { language: "typescript", snippet: music, name: /\.mp3$/ },
    { language: "typescript", snippet: speech, name: /^speech\.wav$/ },
    { language: "curl", snippet: image, name: /\.png$/ },
    { language: "curl", snippet: music, name: /\.mp3$/ },
    { language: "curl", snippet: speech, name: /^speech\.wav$/ },
  ])("$language: $snippet.path", async ({ language, snippet, name: expected }, { skip }) => {
    skip(language === "curl" && !hasJq, "needs jq");
    const files = await madeBy(language, snippet);
    expect(files.size).toBe(1);
    for (const [name, bytes] of files) {
      expect(name).toMatch(expected);
      const ending = name.split(".").at(-1) ?? "";
      expect(bytes.toString("latin1", 0, 4)).toMatch(beginnings[ending] ?? /^$/);
    }
  });
});
