import { randomBytes } from "node:crypto";
import sharp from "sharp";
import type { Peers } from "#common/agreements/peers.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { models, postRequest, rangeRequest } from "./requests.ts";
import type { Target } from "./target.ts";

/** Accounts that share the load, each with a key. */
const accountCount = 16;
/** The balance in either unit: more than any run can be charged. */
const funds = 1_000_000_000_000n;
/** The rate of a key: more than any run can send. */
const requestsPerMinute = 1_000_000;
/** Pixels of a side of the downloaded image. It is noise, so that it has 12 MiB as a PNG too. */
const sidePixels = 2_048;

/** A catalog with the bench's models at the mock. */
export function catalogFor(upstreamPort: number): object {
  const upstream = (path: string) => ({
    protocol: "openai",
    baseUrl: `http://127.0.0.1:${upstreamPort}${path}/v1`,
  });
  const price = 1_000_000;
  const chat = {
    kind: "chat",
    maxInputTokens: 100_000,
    maxOutputTokens: 4_000,
    safetyMarginTokens: 100,
    pricing: {
      inputUsdMicrosPerMillionTokens: price,
      cachedInputUsdMicrosPerMillionTokens: price,
      outputUsdMicrosPerMillionTokens: price,
    },
  };
  const image = {
    kind: "image",
    creditPrice: 1,
    sizes: ["1024x1024"],
    availableAspectRatios: ["auto", "1:1"],
    maxReferences: 0,
  };
  const waiting = {
    // The mock holds one job for ever. The bench measures how jobs are accepted, not how they are done.
    maxConcurrent: 1,
  };
  return {
    developerPrompt: "Be brief.",
    upstreams: {
      mock: upstream(""),
      slow: upstream("/paced"),
      studio: { protocol: "builtin" },
    },
    models: [
      { id: models.chat, upstream: "mock", ...chat },
      { id: models.seeing, upstream: "mock", ...chat, inputModalities: ["text", "image"] },
      { id: models.paced, upstream: "slow", ...chat },
      { id: models.image, upstream: "mock", ...image, ...waiting },
      { id: models.drawn, upstream: "studio", ...image },
    ],
  };
}

/** Makes accounts with funds. Answers a key of each. */
export function makeKeys({ auth, billing }: Peers): Promise<string[]> {
  const make = async (_: unknown, i: number) => {
    const { account } = await auth.createAccount({ name: `bench ${i}` });
    const accountId = account?.accountId ?? "";
    for (const unit of [Unit.USD_MICROS, Unit.CREDITS]) {
      await billing.grant({ accountId, unit, amount: funds, operationId: `bench-${unit}` });
    }
    return (await auth.createKey({ accountId, requestsPerMinute })).secret;
  };
  return Promise.all(Array.from({ length: accountCount }, make));
}

/** Every kind of request with all the keys. Ranges are of an image of the first account. */
export async function requestsOf(
  baseUrl: string,
  keys: readonly string[],
): Promise<Target["requests"]> {
  const [firstKey = ""] = keys;
  const picture = `/v1/files/${await upload(baseUrl, firstKey)}/content`;
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const post = (kind: Parameters<typeof postRequest>[0], path: string) =>
    keys.map((key) => postRequest(kind, path, bearer(key)));
  return {
    json: post("json", "/v1/responses"),
    stream: post("stream", "/v1/responses"),
    prompt: post("prompt", "/v1/responses"),
    paced: post("paced", "/v1/responses"),
    submit: post("submit", "/v1/images/generations"),
    range: [rangeRequest(picture, bearer(firstKey))],
  };
}

/** A large image that cannot be compressed. */
export async function noisePicture(): Promise<Buffer> {
  const raw = { width: sidePixels, height: sidePixels, channels: 3 as const };
  return sharp(randomBytes(sidePixels * sidePixels * raw.channels), { raw })
    .png({ compressionLevel: 0 })
    .toBuffer();
}

async function upload(baseUrl: string, key: string): Promise<string> {
  const body = new FormData();
  body.set("purpose", "vision");
  body.set(
    "file",
    new Blob([new Uint8Array(await noisePicture())], { type: "image/png" }),
    "n.png",
  );
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(`${baseUrl}/files`, { method: "POST", headers, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the picture was not taken: ${text}`);
  return (JSON.parse(text) as { id: string }).id;
}
