import { createFalClient, type QueueStatus } from "@fal-ai/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sampleWav } from "../../../services/upstreams/media/samples.fixture.ts";
import { redirectTo } from "../scripted-media-upstream.ts";
import { type FalDouble, falAnswers, falFailures, startFal } from "./fal.ts";

let fal: FalDouble;
let client: ReturnType<typeof createFalClient>;
beforeEach(async () => {
  fal = await startFal();
  client = clientOf(fal.key);
});
afterEach(() => fal[Symbol.asyncDispose]());

/** fal's own client, with the double in the place of both of fal's hosts. */
function clientOf(credentials: string) {
  return createFalClient({
    credentials,
    fetch: (url, init) =>
      fetch(String(url).replace(/^https:\/\/(queue\.fal\.run|rest\.fal\.ai)/, fal.origin), init),
  });
}

const flux = "fal-ai/flux/dev";
const input = { prompt: "a boat", num_images: 2, seed: 7 };
const submit = (model = flux, asked: object = input) =>
  client.queue.submit(model, { input: asked });
const look = (requestId: string, model = flux) => client.queue.status(model, { requestId });
const resultOf = (requestId: string, model = flux) => client.queue.result(model, { requestId });
const ended = async (requestId: string, model = flux) => {
  fal.finish(requestId);
  return resultOf(requestId, model);
};

describe("fal's own client", () => {
  test("subscribes, from the queue to the result", async () => {
    fal.plan({ positions: [2, 1, 0], running: 2 });
    const seen: QueueStatus[] = [];
    const { data, requestId } = await client.subscribe(flux, {
      ...{ input, logs: true, pollInterval: 1 },
      onQueueUpdate: (status) => void seen.push(status),
    });
    expect(
      seen.map((status) => (status.status === "IN_QUEUE" ? status.queue_position : status.status)),
    ).toEqual([2, 1, 0, "IN_PROGRESS", "IN_PROGRESS", "COMPLETED"]);
    expect(fal.generations).toMatchObject([{ id: requestId, model: flux, input }]);
    expect(data.images).toHaveLength(2);
    const image = await fetch(data.images[0]?.url ?? "");
    expect(image.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await image.arrayBuffer()).equals(fal.outputs.images[0] as Buffer)).toBe(
      true,
    );
    expect(fal.paid()).toEqual([requestId]);
    expect(new URL(data.images[0]?.url ?? "").origin).not.toBe(fal.origin);
  });

  test("submits, looks, and asks too early", async () => {
    fal.plan({ pace: "advance", positions: [0], running: 1 });
    const queued = await submit();
    expect(queued).toMatchObject({ status: "IN_QUEUE", queue_position: 0 });
    expect(queued.status_url).toBe(
      `${fal.origin}/fal-ai/flux/requests/${queued.request_id}/status`,
    );
    expect((await fetch(queued.status_url)).status).toBe(401);
    await expect(resultOf(queued.request_id)).rejects.toMatchObject({
      ...{ status: 400, body: { detail: "Request is still in progress" } },
    });
    fal.advance();
    expect(await look(queued.request_id)).toMatchObject({ status: "IN_PROGRESS" });
    expect(await look(queued.request_id)).toMatchObject({ status: "IN_PROGRESS" });
    fal.advance();
    expect(await look(queued.request_id)).toMatchObject({ status: "COMPLETED", metrics: {} });
    expect((await resultOf(queued.request_id)).data).toMatchObject({ seed: 7 });
  });

  test("cancels: out of the queue, while it runs, in vain, too late, unknown", async () => {
    const cancel = (requestId: string) => client.queue.cancel(flux, { requestId });
    fal.plan(...[1, 2, 3].map(() => ({ pace: "advance" as const, positions: [0] })));
    fal.plan({ pace: "advance", positions: [0], cancelledInQueue: "unknown" });
    const [queued, obeying, ignoring, gone] = [
      ...[await submit(), await submit(), await submit(), await submit()].map(
        (one) => one.request_id,
      ),
    ] as [string, string, string, string];
    for (const id of [obeying, ignoring]) fal.advance(id);
    (fal.generations[2] as (typeof fal.generations)[0]).plan.cancel = "ignored";
    for (const id of [queued, obeying, ignoring, gone]) await cancel(id);
    expect(await look(queued)).toMatchObject({
      status: "COMPLETED",
      error_type: "client_cancelled",
    });
    await expect(resultOf(obeying)).rejects.toMatchObject({ status: 499 });
    expect(await look(ignoring)).toMatchObject({ status: "IN_PROGRESS" });
    expect((await ended(ignoring)).data.images).toHaveLength(2);
    await expect(look(gone)).rejects.toMatchObject({ status: 404 });
    await expect(cancel(ignoring)).rejects.toMatchObject({
      ...{ status: 400, body: { status: "ALREADY_COMPLETED" } },
    });
    await expect(cancel("nobody")).rejects.toMatchObject({ status: 404 });
    expect(fal.paid()).toEqual([ignoring]);
  });

  test("is told of failures when it asks for the result", async () => {
    fal.plan({ failure: falFailures.refused }, { failure: falFailures.runnerFailed });
    fal.plan({ failure: falFailures.timedOut });
    const [refused, broken, late] = [await submit(), await submit(), await submit()];
    fal.finish();
    expect(await look(refused.request_id)).toMatchObject({
      status: "COMPLETED",
      error: expect.any(String),
    });
    await expect(resultOf(refused.request_id)).rejects.toMatchObject({
      ...{ name: "ValidationError", status: 422, requestId: refused.request_id },
      body: { detail: [{ type: "content_policy_violation", loc: ["body", "prompt"] }] },
    });
    expect(await look(broken.request_id)).toMatchObject({ error_type: "runner_server_error" });
    await expect(resultOf(broken.request_id)).rejects.toMatchObject({ status: 500 });
    // fal's own client would repeat the request after a 504 again and again.
    const headers = { authorization: `Key ${fal.key}` };
    const answer = await fetch(late.response_url, { headers });
    expect([answer.status, answer.headers.get("x-fal-error-type")]).toEqual([
      504,
      "request_timeout",
    ]);
    // A failure of a server is free, but a refusal may not be.
    expect(fal.paid()).toEqual([refused.request_id]);
  });

  test("uploads a file and refers to it; one that was never put fails the request", async () => {
    const png = fal.outputs.images[0] as Buffer;
    const url = await client.storage.upload(new Blob([new Uint8Array(png)], { type: "image/png" }));
    const dataUri = `data:image/png;base64,${png.toString("base64")}`;
    const model = "fal-ai/kling-video/v2/image-to-video";
    const one = await submit(model, { prompt: "x", start_image_url: url, end_image_url: dataUri });
    expect(fal.generations[0]?.references).toEqual([
      { at: "start_image_url", bytes: png },
      { at: "end_image_url", bytes: png },
    ]);
    const { data } = await ended(one.request_id, model);
    expect(data.video).toMatchObject({
      content_type: "video/mp4",
      file_size: fal.outputs.video.length,
    });
    const lost = await submit(model, { start_image_url: `${fal.files.origin}/files/nothing.png` });
    await expect(ended(lost.request_id, model)).rejects.toMatchObject({
      body: { detail: [{ type: "file_download_error", loc: ["body", "start_image_url"] }] },
    });
    expect(fal.files.seen("put")[0]?.headers.authorization).toBeUndefined();
  });

  test("sounds, in the format that the model makes", async () => {
    fal.outputs.sound = sampleWav();
    const { request_id } = await submit("fal-ai/ace-step", { tags: "calm", duration: 2 });
    expect((await ended(request_id, "fal-ai/ace-step")).data.audio).toMatchObject({
      ...{ content_type: "audio/wav", file_size: fal.outputs.sound.length },
    });
    await using other = await startFal({ responsePath: "/response" });
    const headers = { authorization: `Key ${other.key}` };
    const post = { method: "POST", headers, body: "{}" };
    const { response_url } = await (await fetch(`${other.origin}/fal-ai/fast-sdxl`, post)).json();
    other.finish();
    expect(response_url).toMatch(/\/response$/);
    expect((await fetch(response_url, { headers })).status).toBe(200);
  });

  test("keeps the prefix of workflows", async () => {
    const { request_id, status_url } = await submit("workflows/me/mine");
    expect(status_url).toContain("/workflows/me/mine/requests/");
    expect(await look(request_id, "workflows/me/mine")).toMatchObject({ status: "IN_QUEUE" });
  });

  test("is refused: a wrong key, no balance", async () => {
    const stranger = clientOf("wrong").queue.submit(flux, { input });
    await expect(stranger).rejects.toMatchObject({ status: 401 });
    const { request_id } = await submit();
    fal.lock();
    await expect(submit()).rejects.toMatchObject({
      ...{ status: 403, body: { detail: expect.stringContaining("Exhausted balance") } },
    });
    expect(await look(request_id)).toMatchObject({ status: "IN_QUEUE" });
    fal.lock(false);
    await submit();
    expect(fal.generations).toHaveLength(2);
  });
});

describe("what a test makes it do", () => {
  const post = () =>
    fetch(`${fal.origin}/${flux}`, {
      ...{ method: "POST", body: JSON.stringify(input) },
      headers: { authorization: `Key ${fal.key}` },
    });
  const aFile = async () => {
    const { request_id } = await submit();
    return (await ended(request_id)).data.images[0]?.url ?? "";
  };

  test("takes a submission and loses its answer: paid for once", async () => {
    fal.next("submit", { kind: "lost" });
    await expect(post()).rejects.toThrow();
    fal.next("submit", { kind: "drop" }, falAnswers.down);
    await expect(post()).rejects.toThrow();
    expect((await post()).status).toBe(503);
    expect(fal.seen("submit")).toHaveLength(3);
    expect(fal.paid()).toHaveLength(1);
  });

  test("holds an answer back until it is let go", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    fal.next("submit", { kind: "held", until: promise });
    const asked = post();
    await fal.request("submit", 1);
    expect(fal.generations).toHaveLength(1);
    resolve();
    expect((await asked).status).toBe(200);
  });

  test("a URL with the sub-path, or of another app, is unknown", async () => {
    const { request_id } = await submit();
    const headers = { authorization: `Key ${fal.key}` };
    for (const path of [flux, "fal-ai/other"]) {
      const url = `${fal.origin}/${path}/requests/${request_id}/status`;
      expect((await fetch(url, { headers })).status).toBe(404);
    }
  });

  test("files come cut, of another type, in parts, from elsewhere, or are gone", async () => {
    const url = await aFile();
    fal.files.next("file", { kind: "file", cutAfter: 20 });
    await expect(fetch(url).then((answer) => answer.bytes())).rejects.toThrow();
    fal.files.next("file", { kind: "file", type: "text/html" });
    expect((await fetch(url)).headers.get("content-type")).toBe("text/html");
    fal.files.next("file", redirectTo("http://127.0.0.1:1/"));
    expect((await fetch(url, { redirect: "manual" })).status).toBe(302);
    const part = await fetch(url, { headers: { range: "bytes=1-3" } });
    expect([part.status, await part.text()]).toEqual([206, "PNG"]);
    fal.files.remove(url);
    expect((await fetch(url)).status).toBe(404);
  });

  test("goes away and comes back at the same place, forgetting nothing", async () => {
    const { request_id } = await submit();
    await fal.stop();
    await expect(post()).rejects.toThrow();
    await fal.start();
    expect(await look(request_id)).toMatchObject({ status: "IN_QUEUE" });
  });
});
