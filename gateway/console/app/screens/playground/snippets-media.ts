// Writes requests for images, jobs, audio and embeddings as code. `snippets.ts` writes those of text.

import {
  curlBody,
  curlTo,
  pythonArguments,
  pythonClient,
  pythonOf,
  typescriptClient,
} from "./snippet-parts.ts";

interface Told {
  /** Ends in `/v1`. */
  base: string;
  path: string;
  body: Record<string, unknown>;
  /** The name of the file that is sent. */
  file: string;
}

/** Writes a request in each language. */
export type Writers = Record<"curl" | "python" | "typescript", (told: Told) => string>;

const lines = (...all: string[]) => all.join("\n");

/** The fields of OpenAI's `images.generate`. The client sends others as extra ones. */
const imageFields = ["model", "prompt", "n", "size", "quality"];

function split(body: Record<string, unknown>) {
  const all = Object.entries(body);
  const known = all.filter(([name]) => imageFields.includes(name));
  const extra = all.filter(([name]) => !imageFields.includes(name));
  return { known: Object.fromEntries(known), extra: Object.fromEntries(extra) };
}

/** Images by OpenAI's clients, which wait for them. By curl they are a job, as the other media are. */
export const images: Writers = {
  curl: (told) => curlJob(told, "images"),
  python: ({ base, body }) => {
    const { known, extra } = split(body);
    const sent = Object.keys(extra).length > 0 ? { ...known, extra_body: extra } : known;
    return lines(
      "import base64, os",
      "from openai import OpenAI",
      "",
      pythonClient(base, ', default_headers={"Prefer": "wait"}'),
      `answer = client.images.generate(\n${pythonArguments(sent)})`,
      "for place, image in enumerate(answer.data, 1):",
      '    with open(f"image-{place}.{answer.output_format}", "wb") as file:',
      "        file.write(base64.b64decode(image.b64_json))",
    );
  },
  typescript: ({ base, body }) => {
    const isExtended = Object.keys(split(body).extra).length > 0;
    const sent = JSON.stringify(body, null, 2);
    return lines(
      'import { writeFile } from "node:fs/promises";',
      'import OpenAI from "openai";',
      "",
      typescriptClient(base, ', defaultHeaders: { Prefer: "wait" }'),
      isExtended
        ? `const request = ${sent};\nconst answer = await client.images.generate(request as OpenAI.ImageGenerateParamsNonStreaming);`
        : `const answer = await client.images.generate(${sent});`,
      "for (const [place, image] of answer.data.entries()) {",
      '  const bytes = Buffer.from(image.b64_json, "base64");',
      "  await writeFile(`image-${place + 1}.${answer.output_format}`, bytes);",
      "}",
    );
  },
};

/** A job of the kind whose outputs this field has. OpenAI's clients have no such call. */
export const jobs = (field: "videos" | "clips"): Writers => ({
  curl: (told) => curlJob(told, field),
  python: ({ base, path, body }) =>
    lines(
      "import mimetypes, os, time",
      "import requests",
      "",
      `api = "${base}"`,
      'auth = {"Authorization": f"Bearer {os.environ[\'KEY\']}"}',
      `job = requests.post(f"{api}${path}", headers=auth, json=${pythonOf(body, 0)}).json()`,
      'while not job["terminal"]:',
      "    time.sleep(3)",
      '    job = requests.get(job["statusUrl"], headers=auth).json()',
      `for made in job["${field}"]:`,
      '    name = made["id"] + mimetypes.guess_extension(made["mimeType"])',
      '    with open(name, "wb") as file:',
      '        file.write(requests.get(made["url"], headers=auth).content)',
    ),
  typescript: ({ base, path, body }) =>
    lines(
      'import { writeFile } from "node:fs/promises";',
      "",
      `const api = "${base}";`,
      'const headers = { authorization: `Bearer ${process.env.KEY}`, "content-type": "application/json" };',
      `const body = JSON.stringify(${JSON.stringify(body, null, 2)});`,
      `const sent = await fetch(\`\${api}${path}\`, { method: "POST", headers, body });`,
      "let job = await sent.json();",
      "while (!job.terminal) {",
      "  await new Promise((resolve) => setTimeout(resolve, 3_000));",
      "  job = await (await fetch(job.statusUrl, { headers })).json();",
      "}",
      `for (const made of job.${field}) {`,
      "  const file = await fetch(made.url, { headers });",
      `  await writeFile(\`\${made.id}.${endings[field]}\`, await file.bytes());`,
      "}",
    ),
});

/** The endings of files, which the service makes in one format each. */
const endings = { videos: "mp4", clips: "mp3" } as const;

/** By curl and jq: the job, its end, its files. */
function curlJob({ base, path, body }: Told, field: "images" | "videos" | "clips"): string {
  const ending = field === "images" ? '\\(.mimeType | sub(".*/"; ""))' : endings[field];
  return lines(
    "export KEY=gm_…",
    `job=$(curl -s ${base}${path} \\`,
    '  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\',
    `${curlBody(body)})`,
    `while [ "$(printf '%s' "$job" | jq .terminal)" = false ]; do`,
    "  sleep 3",
    `  job=$(curl -s "$(printf '%s' "$job" | jq -r .statusUrl)" -H "Authorization: Bearer $KEY")`,
    "done",
    `printf '%s' "$job" | jq -r '.${field}[]? | "\\(.url) \\(.id).${ending}"' | while read -r url name; do`,
    '  curl -s "$url" -H "Authorization: Bearer $KEY" -o "$name"',
    "done",
  );
}

export const speech: Writers = {
  curl: ({ base, path, body }) =>
    lines(`${curlTo(base, path)}`, `${curlBody(body)} -o speech.${body.response_format}`),
  python: ({ base, body: { language, ...body } }) => {
    const sent = language === undefined ? body : { ...body, extra_body: { language } };
    return lines(
      "import os",
      "from openai import OpenAI",
      "",
      pythonClient(base),
      `with client.audio.speech.with_streaming_response.create(\n${pythonArguments(sent)}) as speech:`,
      `    speech.stream_to_file("speech.${body.response_format}")`,
    );
  },
  typescript: ({ base, body }) => {
    const sent = JSON.stringify(body, null, 2);
    return lines(
      'import { writeFile } from "node:fs/promises";',
      'import OpenAI from "openai";',
      "",
      typescriptClient(base),
      ...(body.language === undefined
        ? [`const speech = await client.audio.speech.create(${sent});`]
        : [
            `const request = ${sent};`,
            "const speech = await client.audio.speech.create(request as OpenAI.Audio.SpeechCreateParams);",
          ]),
      `await writeFile("speech.${body.response_format}", Buffer.from(await speech.arrayBuffer()));`,
    );
  },
};

export const transcription: Writers = {
  curl: ({ base, path, body, file }) =>
    lines(
      "export KEY=gm_…",
      `curl ${base}${path} -H "Authorization: Bearer $KEY" \\`,
      ...Object.entries(body).map(
        ([name, value]) => `  --form-string ${quoted(`${name}=${value}`)} \\`,
      ),
      `  -F ${quoted(`file=@${file}`)}`,
    ),
  python: ({ base, body, file }) =>
    lines(
      "import os",
      "from openai import OpenAI",
      "",
      pythonClient(base),
      `with open(${JSON.stringify(file)}, "rb") as file:`,
      "    answer = client.audio.transcriptions.create(",
      `        file=file,\n${pythonArguments(body).replace(/^/gm, "    ").trimEnd()}\n    )`,
      "print(answer.text)",
    ),
  typescript: ({ base, body, file }) =>
    lines(
      'import { createReadStream } from "node:fs";',
      'import OpenAI from "openai";',
      "",
      typescriptClient(base),
      "const answer = await client.audio.transcriptions.create({",
      `  file: createReadStream(${JSON.stringify(file)}),`,
      ...Object.entries(body).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`),
      "});",
      "console.log(answer.text);",
    ),
};

/** A word of a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

export const embeddings: Writers = {
  curl: ({ base, path, body }) => lines(curlTo(base, path), curlBody(body)),
  python: ({ base, body }) =>
    lines(
      "import os",
      "from openai import OpenAI",
      "",
      pythonClient(base),
      `answer = client.embeddings.create(\n${pythonArguments(body)})`,
      "vectors = [one.embedding for one in answer.data]",
    ),
  typescript: ({ base, body }) =>
    lines(
      'import OpenAI from "openai";',
      "",
      typescriptClient(base),
      `const answer = await client.embeddings.create(${JSON.stringify(body, null, 2)});`,
      "const vectors = answer.data.map((one) => one.embedding);",
    ),
};
