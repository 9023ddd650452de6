import { randomUUID } from "node:crypto";
import {
  sampleMp3,
  sampleSound,
  sampleWav,
} from "../../../services/upstreams/media/samples.fixture.ts";
import type { Behaviour } from "../scripted-behaviours.ts";
import { type Answer, type Double, type Route, reply, startDouble } from "./double.ts";

/**
 * Speech of ElevenLabs (api.elevenlabs.io): `POST /v1/text-to-speech/{voice_id}`, and the same with `/stream` in chunks.
 *
 * From elevenlabs/elevenlabs-docs:
 * * fern/apis/api/openapi.json: path, `xi-api-key`, `output_format` and its values, 422 in FastAPI's form.
 * * fern/docs/pages/developer-guides/error-messages.mdx: codes and their statuses.
 * * models.mdx: `current-concurrent-requests` and `maximum-concurrent-requests`.
 * * request-stitching.mdx: `request-id`, `character-cost`.
 *
 * `{detail: {status, message}}` and quota_exceeded as 401: its help centre's page on 400 and 401, and a user's report (home-assistant/core
 * issue 160414). Its newer page of errors has `{detail: {type, code, message, status}}` and 402 insufficient_credits for the same.
 * content_against_policy as 403: other projects' clients expect it.
 * Inferred without a source: an unknown voice is 404, where its page says 400 or 401. The code for a speed outside of 0.7 to 1.2. Opus
 * comes in Ogg, in which form other projects' clients store and send it.
 */
export interface ElevenLabsDouble extends Double<ElevenLabsRoute> {
  key: string;
  /** The known voices. */
  voices: Set<string>;
  /** Characters that are left. A request that needs more is refused. */
  credits: number;
  /** All speeches in the order of arrival. */
  speeches: Speech[];
  /** The bytes of MP3 formats. Others are silence. */
  sound: Uint8Array;
  /** The ids of charged speeches. */
  paid(): string[];
}

type ElevenLabsRoute = "speak" | "stream" | "models" | "voice";

export interface Speech {
  id: string;
  voice: string;
  format: string;
  text: string;
  model: string;
  settings: object | undefined;
  characters: number;
}

/** Answers without any work, for {@link Double.next}. */
export const elevenLabsAnswers = {
  invalidKey: refused(401, "invalid_api_key", "Invalid API key"),
  quotaExceeded: refused(
    ...([401, "quota_exceeded"] as const),
    "This request exceeds your quota of 10000. You have 0 credits remaining, while 91 credits are required for this request.",
  ),
  /** The wording of its newer page of errors. */
  insufficientCredits: reply(402, {
    detail: { type: "payment_required", code: "insufficient_credits", message: "No credits." },
  }),
  againstPolicy: refused(
    ...([403, "content_against_policy"] as const),
    "We are sorry but text you are trying to use may violate our Terms of Service and has been blocked.",
  ),
  wrongSettings: refused(400, "invalid_voice_settings", "Speed must be between 0.7 and 1.2."),
  wrongLanguage: refused(
    ...([400, "unsupported_language"] as const),
    "Model 'eleven_multilingual_v2' does not support the language_code.",
  ),
  tooManyAtOnce: refused(
    ...([429, "too_many_concurrent_requests"] as const),
    "Too many concurrent requests. Your current subscription is associated with a maximum of 2 concurrent requests (running in parallel).",
  ),
  busy: refused(429, "system_busy", "Our services are experiencing high levels of traffic."),
  tooLong: refused(
    ...([400, "max_character_limit_exceeded"] as const),
    "This request's text has more characters than the model takes.",
  ),
  unknownVoice: refused(404, "voice_not_found", "A voice with the given id was not found."),
  down: reply(500, { detail: "Internal Server Error" }),
} satisfies Record<string, Behaviour>;

/** The `model_id`s in its list (models.mdx). */
const models = ["eleven_v3", "eleven_multilingual_v2", "eleven_flash_v2_5", "eleven_turbo_v2_5"];

const defaultFormat = "mp3_44100_128";

/** Characters that the usual models accept. */
const mostCharacters = 10_000;

/**
 * `codec_rate` or `codec_rate_bitrate`, from the list in openapi.json. WAVs are in the newer list of elevenlabs-js
 * (TextToSpeechConvertRequestOutputFormat.ts).
 */
const formats =
  /^(mp3_22050_32|mp3_24000_48|mp3_44100_(32|64|96|128|192)|(pcm|wav)_(8000|16000|22050|24000|32000|44100|48000)|[ua]law_8000|opus_48000_(32|64|96|128|192))$/;

/** Starts a server on a free loopback port (or on `port`). */
export async function startElevenLabs({
  port = 0,
  key = "sk_test",
} = {}): Promise<ElevenLabsDouble> {
  const speeches: Speech[] = [];
  const state = { credits: 10_000, sound: sampleMp3() as Uint8Array };
  const voices = new Set(["21m00Tcm4TlvDq8ikWAM"]);

  const speaking = (["speak", "stream"] as const).map((name): Route<ElevenLabsRoute> => {
    const rest = name === "stream" ? "/stream" : "";
    return {
      ...{ name, method: "POST", path: new RegExp(`^/v1/text-to-speech/([^/]+)${rest}$`) },
      answer: ({ body, query }, [voice = ""]) => {
        const format = query.get("output_format") ?? defaultFormat;
        const text: unknown = body?.text;
        if (typeof text !== "string") return invalid(["body", "text"], "Field required", "missing");
        if (!formats.test(format))
          return invalid(["query", "output_format"], "Input should be a valid format", "enum");
        if (!voices.has(voice)) return elevenLabsAnswers.unknownVoice;
        const speed = body.voice_settings?.speed ?? 1;
        if (speed < 0.7 || speed > 1.2) return elevenLabsAnswers.wrongSettings;
        if (body.language_code !== undefined && isMultilingualV2(body.model_id))
          return elevenLabsAnswers.wrongLanguage;
        const characters = [...text].length;
        if (characters > mostCharacters) return elevenLabsAnswers.tooLong;
        if (characters > state.credits) return elevenLabsAnswers.quotaExceeded;
        state.credits -= characters;
        const speech: Speech = {
          ...{ id: randomUUID(), voice, format, text, characters },
          ...{ model: body.model_id ?? "eleven_multilingual_v2", settings: body.voice_settings },
        };
        speeches.push(speech);
        const headers = headersOf(speech);
        const bytes = bytesOf(format, state.sound);
        if (name === "stream")
          return inChunks(bytes, { "content-type": typeOf(format), ...headers });
        return { kind: "file", bytes, type: typeOf(format), headers };
      },
    };
  });
  const lists: Route<ElevenLabsRoute>[] = [
    {
      ...{ name: "models", method: "GET", path: /^\/v1\/models$/ },
      answer: () =>
        reply(
          200,
          models.map((id) => ({ model_id: id, can_do_text_to_speech: true })),
        ),
    },
    {
      ...{ name: "voice", method: "GET", path: /^\/v1\/voices\/([^/]+)$/ },
      answer: (_seen, [id = ""]) =>
        voices.has(id)
          ? reply(200, { voice_id: id, name: "Rachel", category: "premade" })
          : refused(400, "voice_not_found", "A voice with the given id was not found."),
    },
  ];
  const double = await startDouble([...speaking, ...lists], {
    port,
    guard: ({ headers }) =>
      headers["xi-api-key"] === key ? undefined : elevenLabsAnswers.invalidKey,
  });
  return {
    ...double,
    ...{ key, voices, speeches },
    get credits() {
      return state.credits;
    },
    set credits(left) {
      state.credits = left;
    },
    get sound() {
      return state.sound;
    },
    set sound(bytes) {
      state.sound = bytes;
    },
    paid: () => speeches.map(({ id }) => id),
  };
}

function headersOf({ id, characters }: Speech): Record<string, string> {
  return {
    ...{ "request-id": id, "character-cost": `${characters}` },
    ...{ "current-concurrent-requests": "1", "maximum-concurrent-requests": "2" },
  };
}

/** All formats except MP3 are a second of silence. PCM and similar ones have no head. */
function bytesOf(format: string, mp3: Uint8Array): Uint8Array {
  const [codec, rate] = format.split("_");
  if (codec === "mp3") return mp3;
  if (codec === "opus") return sampleSound("opus", 1);
  if (codec === "wav") return sampleWav(1, Number(rate));
  return new Uint8Array(Number(rate) * (codec === "pcm" ? 2 : 1));
}

function typeOf(format: string): string {
  const types: Record<string, string> = {
    ...{ mp3: "audio/mpeg", opus: "audio/opus", pcm: "audio/pcm", wav: "audio/wav" },
  };
  return types[format.split("_")[0] ?? ""] ?? "audio/basic";
}

/** The default model takes no language code, because it recognizes the language of a text. */
function isMultilingualV2(model = "eleven_multilingual_v2"): boolean {
  return model === "eleven_multilingual_v2";
}

/** Without a length, one piece at a time. */
function inChunks(bytes: Uint8Array, headers: Record<string, string>): Answer {
  return {
    kind: "custom",
    async handle(_seen, response) {
      response.writeHead(200, headers);
      for (let at = 0; at < bytes.length && !response.destroyed; at += 4_096)
        await new Promise((resolve) => response.write(bytes.subarray(at, at + 4_096), resolve));
      response.end();
    },
  };
}

function refused(status: number, code: string, message: string): Behaviour {
  return reply(status, { detail: { status: code, message } });
}

function invalid(loc: string[], msg: string, type: string): Behaviour {
  return reply(422, { detail: [{ loc, msg, type }] });
}
