import { execFileSync } from "node:child_process";
import { stripTypeScriptTypes } from "node:module";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { messagesBody } from "./app/screens/playground/messages.ts";
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

  test.each(["curl", "python", "typescript"] as const)("%s: a mask by its file", (language) => {
    const body = { model: "m", prompt: "a", input_reference: { file_id: "file_1" } };
    const masked = { ...body, mask: { file_id: "file_2" } };
    const code = codeOf(language, { path: "/images/generations", body: masked });
    expect(code).toMatch(/"mask": \{\s+"file_id": "file_2",?\s+\}/);
  });

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

describe("the same request in Anthropic's form", () => {
  const data = "A".repeat(4_000);
  const asked = {
    ...{ model: "chat-1", instructions: "Be kind.", temperature: 0.5, stop: ["END"], stream: true },
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "Look." },
          { type: "input_image", image_url: `data:image/png;base64,${data}` },
          { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE" },
        ],
      },
      { type: "reasoning", summary: [] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "I see." }] },
      { type: "function_call", call_id: "c1", name: "look", arguments: '{"at":1}' },
      { type: "function_call_output", call_id: "c1", output: "A lamp." },
      { role: "user", content: "And now?" },
    ],
    reasoning: { effort: "high", summary: "auto" },
    tools: [{ type: "function", name: "look", parameters: { type: "object", properties: {} } }],
    text: { format: { type: "json_schema", name: "answer", schema: { type: "object" } } },
  };

  test("has its fields and blocks, those of one role in one message", () => {
    expect(messagesBody(asked)).toEqual({
      ...{ model: "chat-1", max_tokens: 4_096, system: "Be kind." },
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Look." },
            { type: "image", source: { type: "base64", media_type: "image/png", data } },
            {
              type: "document",
              source: { type: "base64", media_type: "application/pdf", data: "JVBE" },
              title: "a.pdf",
            },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I see." },
            { type: "tool_use", id: "c1", name: "look", input: { at: 1 } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: "A lamp." },
            { type: "text", text: "And now?" },
          ],
        },
      ],
      tools: [{ name: "look", input_schema: { type: "object", properties: {} } }],
      thinking: { type: "adaptive" },
      output_config: {
        effort: "high",
        format: { type: "json_schema", schema: { type: "object" } },
      },
      ...{ temperature: 0.5, stop_sequences: ["END"], stream: true },
    });
  });

  test("is none where it has audio", () => {
    const content = [{ type: "input_audio", input_audio: { data: "", format: "wav" } }];
    expect(messagesBody({ model: "chat-1", input: [{ role: "user", content }] })).toBeUndefined();
  });

  test.each(["curl", "python", "typescript"] as const)("%s: by Anthropic's client", (language) => {
    const code = codeOf(language, { path: "/messages", body: messagesBody(asked) ?? {} });
    expect(code.length).toBeLessThan(data.length);
    const named = { curl: "anthropic-version", python: "import Anthropic", typescript: "sdk" };
    expect(code).toContain(named[language]);
    const base = "https://genmesh.example.com";
    expect(code).toContain(language === "curl" ? `${base}/v1/messages` : `"${base}"`);
    expect(code).not.toMatch(/gm_\w/);
  });
});
