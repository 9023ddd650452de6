import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type DecoderProcess, startDecoder } from "./decoder-process.ts";
import type { DecodeRequest } from "./protocol.ts";

// A decoder that behaves as the image's path says. It replaces a hostile image that makes a decoder behave so.
const image = { format: "png", width: 1, height: 1, frames: 1, orientation: 1 };
const obedient = `
  process.on("message", ({ source }) => {
    if (source === "decode") process.send({ type: "decoded", image: ${JSON.stringify(image)} });
    if (source === "refuse") process.send({ type: "refused", kind: "corrupt" });
    if (source === "exhaust") process.send({ type: "exhausted" });
    if (source === "exit") process.exit(3);
    if (source === "environment") {
      process.send({ type: "decoded", image: { names: Object.keys(process.env) } });
    }
    if (source.startsWith("SIG")) process.kill(process.pid, source);
  });
  process.send({ type: "ready" });
`;

let folder: string;
let decoder: DecoderProcess | undefined;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "decoder-"));
});
afterEach(() => decoder?.stop());
afterAll(() => rm(folder, { recursive: true }));

async function start(text = obedient, limits = { startTimeoutMs: 10_000, timeoutMs: 10_000 }) {
  const file = path.join(folder, `${crypto.randomUUID()}.mjs`);
  await writeFile(file, text);
  decoder = startDecoder({ program: pathToFileURL(file), memoryMb: 128, ...limits });
  return decoder;
}

function request(source: string): DecodeRequest {
  return { source, accept: ["png"], maxBytes: 1, maxPixels: 1 };
}

const failure = (kind: string) => expect.objectContaining({ kind });

it("gives what the process says, image after image", async () => {
  const process = await start();
  expect(await process.decode(request("decode"))).toEqual(image);
  await expect(process.decode(request("refuse"))).rejects.toEqual(failure("corrupt"));
  expect(await process.decode(request("decode"))).toEqual(image);
  expect(process.isUsable()).toBe(true);
});

it.each([
  ["exhaust", "too_many_pixels"],
  ["SIGSEGV", "corrupt"],
  ["SIGABRT", "corrupt"],
  ["SIGKILL", "unavailable"],
  ["exit", "unavailable"],
])("ends with its process on %s: %s", async (what, kind) => {
  const process = await start();
  await expect(process.decode(request(what))).rejects.toEqual(failure(kind));
  expect(process.isUsable()).toBe(false);
  await expect(process.decode(request("decode"))).rejects.toEqual(failure("unavailable"));
});

it("gives up a process that does not answer in time", async () => {
  const process = await start(obedient, { startTimeoutMs: 10_000, timeoutMs: 50 });
  await expect(process.decode(request("hang"))).rejects.toEqual(failure("timeout"));
  expect(process.isUsable()).toBe(false);
  await process.stop();
});

it("does not count the start into the time of the image", async () => {
  const slow = `setTimeout(() => {${obedient}}, 3_000); setTimeout(() => {}, 60_000);`;
  const process = await start(slow, { startTimeoutMs: 50_000, timeoutMs: 2_000 });
  expect(await process.decode(request("decode"))).toEqual(image);
});

it("gives up a process that never gets ready", async () => {
  const process = await start("setInterval(() => {}, 1000);", {
    startTimeoutMs: 50,
    timeoutMs: 10_000,
  });
  await expect(process.decode(request("decode"))).rejects.toEqual(failure("unavailable"));
  expect(process.isUsable()).toBe(false);
});

it("tells why a process did not start", async () => {
  const process = await start('throw new Error("no such library");');
  const error = await process.decode(request("decode")).catch((thrown) => thrown);
  expect(error).toMatchObject({ kind: "unavailable" });
  expect(error.cause.message).toContain("no such library");
});

it("hands nothing of its environment on", async () => {
  const process = await start();
  const answer: unknown = await process.decode(request("environment"));
  const { names } = answer as { names: string[] };
  const ours = names.filter((name) => !name.startsWith("NODE_CHANNEL"));
  expect(ours).toEqual(["MALLOC_ARENA_MAX"]);
});

it("stops, also while an image is decoded", async () => {
  const process = await start();
  const decoded = process.decode(request("hang"));
  const refused = expect(decoded).rejects.toEqual(failure("unavailable"));
  await process.stop();
  await refused;
  expect(process.isUsable()).toBe(false);
});
