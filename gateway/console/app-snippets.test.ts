import { execFileSync } from "node:child_process";
import { stripTypeScriptTypes } from "node:module";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { codeOf, type Snippet } from "./app/screens/playground/snippets.ts";

beforeAll(() => {
  vi.stubGlobal("location", { origin: "https://genmesh.example.com" });
});

const awkward = ["It's \"this\"\nand 'that' \\ $", "{x} `y` $(z)"].join("");
const text: Snippet = {
  path: "/responses",
  body: {
    model: "chat-1",
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: awkward },
          { type: "input_image", image_url: `data:image/png;base64,${"A".repeat(4_000)}` },
        ],
      },
    ],
    tools: [],
    store: false,
    user: null,
    stream: true,
  },
};

describe("code of a request", () => {
  test("curl: a shell gives the body back as it was, with any quotes in it", () => {
    const code = codeOf("curl", text).replace(/^curl -N/m, "printf '%s\\n'");
    const printed = execFileSync("sh", ["-c", code], { encoding: "utf8" });
    const body = JSON.parse(printed.slice(printed.indexOf("{")));
    expect(body.input[0].content[0].text).toBe(awkward);
    expect(printed).toContain("Authorization: Bearer ");
  });

  test("Python writes None, True and False", () => {
    const code = codeOf("python", text);
    expect(code).toContain("store=False,");
    expect(code).toContain("user=None,");
    expect(code).toContain("stream=True,");
    expect(code).toContain("tools=[],");
  });

  test.each(["curl", "python", "typescript"] as const)(
    "%s: no inline image, no key, the place of this service",
    (language) => {
      for (const path of ["/responses", "/images/generations", "/videos/generations"] as const) {
        const code = codeOf(language, { ...text, path });
        expect(code.length).toBeLessThan(2_000);
        expect(code).toContain("data:image/png;base64,…");
        expect(code).toContain("https://genmesh.example.com/v1");
        expect(code).not.toMatch(/gm_\w/);
      }
    },
  );

  const media: Snippet[] = [
    { path: "/images/generations", body: { model: "m", prompt: awkward, seed: 7 } },
    { path: "/videos/generations", body: { model: "m", prompt: awkward, seconds: 6 } },
    { path: "/music/generations", body: { model: "m", mode: "lyrics", title: awkward } },
    { path: "/audio/speech", body: { model: "m", input: awkward, response_format: "wav" } },
    { path: "/audio/transcriptions", body: { model: "m", prompt: awkward }, file: "it's.mp3" },
    { path: "/embeddings", body: { model: "m", input: [awkward, "b"] } },
  ];
  test.each(media)("$path: a shell and TypeScript read it, and files have endings", (snippet) => {
    execFileSync("sh", ["-n", "-c", codeOf("curl", snippet)]);
    const code = codeOf("typescript", snippet);
    // Names of modules are no matter of the syntax.
    expect(() => stripTypeScriptTypes(code)).not.toThrow();
    const all = (["curl", "python", "typescript"] as const).map((one) => codeOf(one, snippet));
    const names: Record<string, RegExp> = {
      "/images/generations": /output_format|mimeType/,
      "/videos/generations": /\.mp4|guess_extension/,
      "/music/generations": /\.mp3|guess_extension/,
      "/audio/speech": /speech\.wav/,
      "/audio/transcriptions": /\.mp3/,
    };
    for (const one of all) expect(one).toMatch(names[snippet.path] ?? /embeddings/);
  });
});
