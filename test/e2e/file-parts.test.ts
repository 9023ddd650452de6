import OpenAI from "openai";
import { afterAll, describe, expect, test } from "vitest";
import { wavOf } from "../../services/text/files/measuring/samples.fixture.ts";
import { type Caller, refusalOf } from "./caller.ts";
import {
  asked,
  chatFile,
  inputAudio,
  inputFile,
  mp3,
  pdf,
  pdfOf,
  said,
  text,
  uriOf,
  wav,
  withReaders,
} from "./file-parts.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ catalog: withReaders });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const caller = isOwnWorld ? await world.caller() : ({} as Caller);

const ask = (...parts: object[]) => caller.post("/responses", asked(...parts));
const say = (...parts: object[]) => caller.post("/chat/completions", said(...parts));
const held = "400 invalid_request_error";
const at = "input[0].content[1]";
const inChat = "messages[0].content[1]";

describe("files go up", () => {
  const all = [inputFile(pdf, { detail: "high" }), inputAudio(wav), inputAudio(mp3, "mp3")];
  const inMessage = [chatFile(pdf), inputAudio(wav), inputAudio(mp3, "mp3")];

  test("as they are, on /responses, whole and streamed, and compacted", async () => {
    for (const model of ["reader", "reader-peer"]) {
      const seen = world.play();
      expect((await caller.post("/responses", { ...asked(...all), model })).status).toBe(200);
      const events = await caller.stream("/responses", { ...asked(...all), model });
      expect(events.at(-1)?.data).toBe("[DONE]");
      expect(seen).toHaveLength(2);
      for (const { path, body } of seen) {
        expect(path).toBe("/v1/responses");
        expect(body.input[0].content).toEqual([text, ...all]);
      }
    }
    const seen = world.play();
    expect((await caller.post("/responses/compact", asked(...all))).status).toBe(200);
    expect(seen[0]?.body.input[0].content).toEqual([text, ...all]);
  });

  test("as they are, on a chat upstream, whole and streamed", async () => {
    for (const model of ["reader-legacy", "reader-peer"]) {
      const seen = world.play();
      const body = { ...said(...inMessage), model };
      expect((await caller.post("/chat/completions", body)).status).toBe(200);
      await caller.stream("/chat/completions", body);
      expect(seen).toHaveLength(2);
      for (const { path, body: sent } of seen) {
        expect(path).toBe("/v1/chat/completions");
        expect(sent.messages.at(-1).content).toEqual(body.messages[0]?.content);
      }
    }
  });

  test("from chat to a Responses upstream as parts of Responses", async () => {
    const seen = world.play();
    expect((await say(...inMessage)).status).toBe(200);
    await caller.stream("/chat/completions", said(...inMessage));
    for (const { path, body } of seen) {
      expect(path).toBe("/v1/responses");
      expect(body.input.at(-1).content).toEqual([text, inputFile(pdf), ...all.slice(1)]);
    }
  });

  test("in the output of a call", async () => {
    const seen = world.play();
    const output = { type: "function_call_output", call_id: "c", output: [inputFile(pdf)] };
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const body = { model: "reader", input: [call, output] };
    expect((await caller.post("/responses", body)).status).toBe(200);
    expect(seen[0]?.body.input[1]).toEqual(output);
  });

  test("labelled as what they are", async () => {
    const seen = world.play();
    const mislabelled = [
      inputFile(pdf, { file_data: uriOf(pdf, "text/plain"), filename: "notes.txt" }),
      inputFile(pdf, { filename: null }),
      inputAudio(mp3, "wav"),
    ];
    expect((await ask(...mislabelled)).status).toBe(200);
    expect(seen[0]?.body.input[0].content).toEqual([
      text,
      inputFile(pdf, { filename: "notes.txt.pdf" }),
      inputFile(pdf, { filename: "document.pdf" }),
      inputAudio(mp3, "mp3"),
    ]);
  });

  test("by the official client", async () => {
    const client = new OpenAI({ apiKey: caller.key, baseURL: world.baseUrl, maxRetries: 0 });
    const seen = world.play();
    const file = { type: "input_file", filename: "a.pdf", file_data: uriOf(pdf) } as const;
    const response = await client.responses.create({
      model: "reader",
      input: [{ role: "user", content: [file] }],
    });
    expect(response.status).toBe("completed");
    const stream = client.chat.completions.stream({
      model: "reader-legacy",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            { type: "file", file: { filename: "a.pdf", file_data: uriOf(pdf) } },
            {
              type: "input_audio",
              input_audio: { data: wav.toString("base64"), format: "wav" },
            },
          ],
        },
      ],
    });
    expect((await stream.finalChatCompletion()).choices[0]?.finish_reason).toBe("stop");
    expect(seen[0]?.body.input[0].content).toEqual([file]);
    expect(seen[1]?.body.messages.at(-1).content.slice(1)).toEqual([
      chatFile(pdf),
      inputAudio(wav),
    ]);
    const counted = await client.responses.inputTokens.count({
      model: "reader",
      input: [{ role: "user", content: [file] }],
    });
    expect(counted.object).toBe("response.input_tokens");
  });
});

test("PDFs beside short texts wait for no count: many requests of one account are answered at once", async () => {
  const payer = await world.caller({ usdMicros: 100_000_000n });
  world.play();
  const body = asked(inputFile(pdf));
  const answers = await Promise.all(
    Array.from({ length: 80 }, () => payer.post("/responses", body)),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

describe("a model without them", () => {
  test.for([
    ["plain", inputFile(pdf)],
    ["plain", inputAudio(wav)],
    ["pdf-only", inputAudio(wav)],
    ["chat-1", inputFile(pdf)],
    ["plain", { type: "input_file", file_url: "https://example.com/a.pdf" }],
  ] as const)("%s refuses %o on /responses", async ([model, part]) => {
    const seen = world.play();
    const answer = await caller.post("/responses", { ...asked(part), model });
    expect(refusalOf(answer)).toBe(`${held} unsupported_content_type ${at}.type`);
    expect(seen).toHaveLength(0);
  });
  test("refuses them in chat", async () => {
    for (const [model, part] of [
      ["plain", chatFile(pdf)],
      ["legacy", inputAudio(wav)],
      ["pdf-only", inputAudio(wav)],
    ] as const) {
      const answer = await caller.post("/chat/completions", { ...said(part), model });
      expect(refusalOf(answer)).toBe(`${held} unsupported_content_type ${inChat}.type`);
    }
    for (const role of ["assistant", "system"]) {
      const body = { model: "reader", messages: [{ role, content: [chatFile(pdf)] }] };
      expect(refusalOf(await caller.post("/chat/completions", body))).toBe(
        `${held} unsupported_content_type messages[0].content[0].type`,
      );
    }
    const image = { type: "image_url", image_url: { url: "https://example.com/a.png" } };
    expect(refusalOf(await say(image))).toBe(`${held} unsupported_content_type ${inChat}.type`);
  });
  test("is told by the catalog", async () => {
    const { json } = await caller.get("/models/reader");
    expect(json.inputModalities).toEqual(["text", "image", "pdf", "audio"]);
  });
});

describe("a PDF that cannot be read", () => {
  const files: [name: string, bytes: Buffer][] = [
    ["encrypted", pdfOf("trailer\n<</Root 1 0 R/Encrypt<</V 1>>>>")],
    ["cut", pdf.subarray(0, 20)],
  ];
  test.for(files)("goes up as it is: %s", async ([, bytes]) => {
    const seen = world.play();
    expect((await ask(inputFile(bytes))).status).toBe(200);
    expect(seen[0]?.body.input[0].content[1]).toEqual(inputFile(bytes));
  });
  test("is refused where upstream refuses it, and costs nothing", async () => {
    const payer = await world.caller();
    world.play({ kind: "status", status: 400, message: "The PDF is encrypted." });
    const answer = await payer.post("/responses", asked(inputFile(pdf)));
    world.play({ kind: "status", status: 400 });
    const plain = await payer.post("/responses", asked());
    expect(refusalOf(answer)).toBe(refusalOf(plain));
    expect(answer.status).toBe(plain.status);
    expect((await payer.settled()).monthSpend).toBe(0);
  });
});

describe("files that are not taken", () => {
  const data = `${at}.file_data`;
  const value = `${held} invalid_value`;
  const cases: [name: string, part: object, refusal: string][] = [
    [
      "a picture that says PDF",
      inputFile(Buffer.from("\x89PNG\r\n\x1a\n", "latin1")),
      `${value} ${data}`,
    ],
    ["text that says PDF", inputFile(Buffer.from("Hello.")), `${value} ${data}`],
    ["a PDF behind something else", inputFile(Buffer.from(" %PDF-1.7\n")), `${value} ${data}`],
    ["a PDF of no version that there is", inputFile(Buffer.from("%PDF-3.0\n")), `${value} ${data}`],
    ["an empty file", inputFile(Buffer.alloc(0)), `${value} ${data}`],
    ["a file of one byte", inputFile(Buffer.from("%")), `${value} ${data}`],
    ["a file that ends in the head of a PDF", inputFile(Buffer.from("%PDF")), `${value} ${data}`],
    [
      "no base64",
      inputFile(pdf, { file_data: "data:application/pdf;base64,&&&&" }),
      `${value} ${data}`,
    ],
    [
      "base64 without its head",
      inputFile(pdf, { file_data: pdf.toString("base64") }),
      `${value} ${data}`,
    ],
    ["data that is a number", inputFile(pdf, { file_data: 7 }), `${held} invalid_type ${data}`],
    [
      "nothing",
      { type: "input_file", filename: "a.pdf" },
      `${held} missing_required_parameter ${data}`,
    ],
    [
      "both data and address",
      inputFile(pdf, { file_url: "https://example.com/a.pdf" }),
      `${value} ${at}.file_url`,
    ],
    [
      "a file of the upstream",
      inputFile(pdf, { file_id: "file-1" }),
      `${held} unsupported_parameter ${at}.file_id`,
    ],
    [
      "another name for it",
      inputFile(pdf, { url: "https://example.com/a.pdf" }),
      `${held} unsupported_parameter ${at}.url`,
    ],
    ["a detail that is none", inputFile(pdf, { detail: "best" }), `${value} ${at}.detail`],
    ["a long name", inputFile(pdf, { filename: "a".repeat(256) }), `${value} ${at}.filename`],
    [
      "the loopback",
      { type: "input_file", file_url: "https://127.0.0.1/a.pdf" },
      `${value} ${at}.file_url`,
    ],
    [
      "plain http",
      { type: "input_file", file_url: "http://example.com/a.pdf" },
      `${value} ${at}.file_url`,
    ],
    [
      "a local file",
      { type: "input_file", file_url: "file:///etc/passwd" },
      `${value} ${at}.file_url`,
    ],
    ["a PDF that says WAV", inputAudio(pdf), `${value} ${at}.input_audio.data`],
    [
      "a WAV with a codec",
      inputAudio(wavOf(100, { code: 0x55 })),
      `${value} ${at}.input_audio.data`,
    ],
    [
      "sound as a data URI",
      { type: "input_audio", input_audio: { data: uriOf(wav, "audio/wav"), format: "wav" } },
      `${value} ${at}.input_audio.data`,
    ],
    ["another format", inputAudio(wav, "flac"), `${value} ${at}.input_audio.format`],
    ["no sound", { type: "input_audio" }, `${held} missing_required_parameter ${at}.input_audio`],
    [
      "sound that is no object",
      { type: "input_audio", input_audio: "x" },
      `${held} invalid_type ${at}.input_audio`,
    ],
  ];
  test.for(cases)("%s", async ([, part, refusal]) => {
    const seen = world.play();
    expect(refusalOf(await ask(part))).toBe(refusal);
    expect(seen).toHaveLength(0);
  });

  test("in chat", async () => {
    const file = `${inChat}.file`;
    expect(refusalOf(await say(chatFile(wav)))).toBe(`${value} ${file}.file_data`);
    expect(refusalOf(await say(chatFile(pdf, { file_id: "file-1" })))).toBe(
      `${held} unsupported_parameter ${file}.file_id`,
    );
    expect(refusalOf(await say(chatFile(pdf, { file_url: "https://example.com/a.pdf" })))).toBe(
      `${held} unsupported_parameter ${file}.file_url`,
    );
    expect(refusalOf(await say({ type: "file" }))).toBe(
      `${held} missing_required_parameter ${file}`,
    );
    expect(refusalOf(await say(inputAudio(pdf)))).toBe(`${value} ${inChat}.input_audio.data`);
  });

  test("more than twenty", async () => {
    const over = Array<object>(21).fill(inputAudio(wavOf(10)));
    expect(refusalOf(await ask(...over))).toBe(`${value} input[0].content[21].input_audio`);
  });
});

describe("where private references are allowed", () => {
  test("an address is fetched here and goes up as the file that was fetched", async () => {
    await using open = await startWorld({
      catalog: withReaders,
      env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" },
    });
    const payer = await open.caller();
    const root = new URL(open.upstream.baseUrl).origin;
    const seen = open.play(({ path }) =>
      path.startsWith("/v1/")
        ? { kind: "ok" }
        : {
            kind: "custom",
            handle: (_seen, response) => {
              if (path === "/a.pdf") response.setHeader("content-type", "text/plain").end(pdf);
              else if (path === "/b.pdf") response.end("no PDF");
              else if (path === "/short.pdf") response.end("%PD");
              else response.setHeader("content-length", 30 << 20).end(Buffer.alloc(30 << 20));
            },
          },
    );
    const at = (name: string, fields: object = {}) =>
      asked({ type: "input_file", file_url: `${root}/${name}`, ...fields });
    expect((await payer.post("/responses", at("a.pdf", { detail: "low" }))).status).toBe(200);
    const sent = seen.find(({ path }) => path === "/v1/responses");
    expect(sent?.body.input[0].content[1]).toEqual(
      inputFile(pdf, { filename: "document.pdf", detail: "low" }),
    );
    expect(seen.find(({ path }) => path === "/a.pdf")?.headers.authorization).toBeUndefined();
    for (const name of ["b.pdf", "short.pdf", "large.pdf", "none.pdf"]) {
      expect(refusalOf(await payer.post("/responses", at(name)))).toBe(
        "400 invalid_request_error invalid_value input[0].content[1].file_url",
      );
    }
  });
});
