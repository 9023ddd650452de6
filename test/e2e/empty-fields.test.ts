import { afterAll, describe, expect, test } from "vitest";
import { sampleWav } from "../../services/upstreams/media/samples.fixture.ts";
import type { Caller } from "./caller.ts";
import { startMediaWorld } from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

// A page's form sends each of its fields. One that was left empty counts as absent.
const ears = {
  ...{ id: "ears", kind: "transcription", upstream: "main", maxSeconds: 60 },
  pricing: { usdMicrosPerMinute: 60_000 },
};
const made = await startMediaWorld({ models: [ears] });
afterAll(() => made[Symbol.asyncDispose]());
ownWorldOnly();

type Fields = Record<string, string | Blob>;
const blob = (bytes: Uint8Array) => new Blob([new Uint8Array(bytes)]);

async function post(caller: Caller, path: string, fields: Fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === "string") form.append(name, value);
    else form.append(name, value, value.size === 0 ? "" : "picked");
  }
  const headers = { authorization: `Bearer ${caller.key}` };
  const answer = await fetch(`${made.world.baseUrl}${path}`, {
    ...{ method: "POST", headers, body: form },
  });
  const { error } = (await answer.json()) as { error?: { code: string; param: string } };
  return [answer.status, error?.code, error?.param];
}

/** Valid forms with every other field of OpenAI's empty, and the fields that each needs. */
const forms: Record<string, { needed: Fields; others: string[] }> = {
  "/images/edits": {
    needed: { model: "scripted-image", prompt: "a boat", image: blob(made.png) },
    others: [
      ...["n", "size", "seed", "response_format", "stream", "user", "quality", "background"],
      ...["input_fidelity", "output_format", "output_compression", "partial_images"],
      ...["negativePrompt", "aspectRatio", "resolution", "referenceFileIds"],
    ],
  },
  "/audio/transcriptions": {
    needed: { model: "ears", file: blob(sampleWav(1)) },
    others: [
      ...["language", "prompt", "response_format", "temperature", "stream", "include[]"],
      ...["timestamp_granularities[]", "chunking_strategy", "known_speaker_names[]"],
    ],
  },
  "/files": {
    needed: { purpose: "vision", file: blob(made.png) },
    others: ["expires_after[anchor]", "expires_after[seconds]"],
  },
};

describe.each(Object.entries(forms))("%s", (path, { needed, others }) => {
  const empty = Object.fromEntries(others.map((name) => [name, ""]));
  const files = path === "/images/edits" ? { mask: blob(Buffer.alloc(0)) } : {};

  test("takes its optional fields empty", async () => {
    const caller = await made.world.caller({ credits: 10n });
    made.world.play({ kind: "json", body: { text: "Good morning." } });
    expect(await post(caller, path, { ...empty, ...files, ...needed })).toEqual([
      ...[200, undefined, undefined],
    ]);
  });

  test.each(Object.keys(needed))("misses an empty %s", async (name) => {
    const caller = await made.world.caller({ credits: 10n });
    const none = typeof needed[name] === "string" ? "" : blob(Buffer.alloc(0));
    expect(await post(caller, path, { ...needed, [name]: none })).toEqual([
      ...[400, "missing_required_parameter", name],
    ]);
  });
});
