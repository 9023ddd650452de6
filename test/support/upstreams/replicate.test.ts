import Replicate from "replicate";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type ReplicateDouble,
  replicateAnswers,
  replicateErrors,
  startReplicate,
} from "./replicate.ts";

let double: ReplicateDouble;
let client: Replicate;
beforeEach(async () => {
  double = await startReplicate();
  client = new Replicate({ auth: double.key, baseUrl: double.baseUrl });
});
afterEach(() => double[Symbol.asyncDispose]());

const flux = "black-forest-labs/flux-schnell";
const input = { prompt: "a boat", num_outputs: 2 };
const create = (asked: object = input) => client.predictions.create({ model: flux, input: asked });

describe("Replicate's own client", () => {
  test("runs a prediction to its end, by polling", async () => {
    const seen: string[] = [];
    const wait = { mode: "poll", interval: 1 } as const;
    const output = await client.run(flux, { input, wait }, ({ status }) => void seen.push(status));
    expect(seen).toEqual(["starting", "processing", "succeeded"]);
    expect(output).toEqual(double.predictions[0]?.urls);
    const [url = ""] = double.predictions[0]?.urls ?? [];
    const png = Buffer.from(await (await fetch(url)).arrayBuffer());
    expect(png.equals(double.outputs.images[0] as Buffer)).toBe(true);
    expect(double.paid()).toEqual([double.predictions[0]?.id]);
  });

  test("runs one with `Prefer: wait`, of a version too, and a single output", async () => {
    const hash = "a".repeat(64);
    double.plan({ makes: "video" });
    const output = await client.run(`minimax/video-01:${hash}`, { input: { prompt: "x" } });
    expect(output).toBe(double.predictions[0]?.urls[0]);
    expect(double.seen("submit")[0]?.headers.prefer).toBe("wait");
    expect(double.predictions[0]).toMatchObject({ model: "of-a-version/model", version: hash });
  });

  test("each end, and straight to it", async () => {
    const ends = ["succeeded", "failed", "canceled", "aborted"] as const;
    for (const end of ends) double.plan({ end, error: replicateErrors.refused });
    double.plan({ starting: 0, processing: 0, output: (urls) => ({ image: urls[0], extra: 1 }) });
    const made = [await create(), await create(), await create(), await create()];
    double.finish();
    const found = await Promise.all(made.map(({ id }) => client.predictions.get(id)));
    expect(found.map(({ status }) => status)).toEqual(ends);
    expect(found[1]).toMatchObject({ error: replicateErrors.refused, output: null });
    expect(found[3]).not.toHaveProperty("started_at");
    expect(await create()).toMatchObject({ status: "succeeded", output: { extra: 1 } });
    expect(double.paid()).toHaveLength(4);
    expect((await client.predictions.list()).results).toHaveLength(5);
  });

  test("cancels: obeyed, ignored, too late", async () => {
    double.plan({}, { cancel: "ignored" });
    const [obeyed, ignored] = [await create(), await create()];
    expect((await client.predictions.cancel(obeyed.id)).status).toBe("canceled");
    expect((await client.predictions.cancel(ignored.id)).status).toBe("starting");
    double.finish();
    expect((await client.predictions.get(ignored.id)).status).toBe("succeeded");
    expect((await client.predictions.cancel(ignored.id)).status).toBe("succeeded");
  });

  test("uploads a file and refers to it, and inlines one", async () => {
    const png = double.outputs.images[0] as Buffer;
    const file = await client.files.create(
      new File([new Uint8Array(png)], "boat.png", { type: "image/png" }),
    );
    expect(await client.files.get(file.id)).toMatchObject({
      size: png.length,
      content_type: "image/png",
    });
    await create({
      image: file.urls.get,
      other: `data:image/png;base64,${png.toString("base64")}`,
    });
    await create({ image: new Blob([new Uint8Array(png)]) });
    expect(double.predictions[0]?.references).toEqual([
      { at: "image", bytes: new Uint8Array(png) },
      { at: "other", bytes: png },
    ]);
    expect(double.predictions[1]?.references).toMatchObject([{ at: "image" }]);
    expect(await client.files.delete(file.id)).toBe(true);
    const { id } = await create({ image: file.urls.get });
    double.finish();
    expect(await client.predictions.get(id)).toMatchObject({ status: "failed" });
  });

  test("is refused: a wrong key, no credit, input that is wrong, an unknown id", async () => {
    const stranger = new Replicate({ auth: "wrong", baseUrl: double.baseUrl });
    const failure = (status: number) => ({ response: expect.objectContaining({ status }) });
    await expect(stranger.predictions.get("x")).rejects.toMatchObject(failure(401));
    double.next("submit", replicateAnswers.insufficientCredit, replicateAnswers.invalidInput);
    await expect(create()).rejects.toMatchObject(failure(402));
    await expect(create()).rejects.toThrow("Input validation failed");
    await expect(
      client.predictions.create({ model: flux, input: undefined as never }),
    ).rejects.toMatchObject(failure(422));
    await expect(client.predictions.get("nothing")).rejects.toMatchObject(failure(404));
    expect(double.predictions).toEqual([]);
  });

  test("tries a throttled creation again: one prediction", async () => {
    double.next("submit", replicateAnswers.throttled, replicateAnswers.throttled);
    await create();
    expect(double.seen("submit")).toHaveLength(3);
    expect(double.paid()).toHaveLength(1);
  });
});

describe("what a test makes it do", () => {
  const post = (headers: Record<string, string> = {}) =>
    fetch(`${double.baseUrl}/models/${flux}/predictions`, {
      ...{ method: "POST", body: JSON.stringify({ input }) },
      headers: { authorization: `Bearer ${double.key}`, ...headers },
    });

  test("a deadline aborts what has not begun and cancels what has", async () => {
    double.plan({ pace: "advance" }, { pace: "advance" });
    for (const _ of [1, 2]) expect((await post({ "cancel-after": "30m" })).status).toBe(201);
    const [first, second] = double.predictions.map(({ id }) => id) as [string, string];
    double.advance(second);
    for (const id of [first, second]) double.passDeadline(id);
    expect(double.predictions.map(({ status }) => status)).toEqual(["aborted", "canceled"]);
    expect(double.paid()).toEqual([second]);
    expect((await post({ "cancel-after": "soon" })).status).toBe(422);
  });

  test("an hour later the data are gone", async () => {
    const { id } = await create();
    double.finish();
    const [url = ""] = double.predictions[0]?.urls ?? [];
    double.removeData(id);
    expect(await client.predictions.get(id)).toMatchObject({
      data_removed: true,
      output: null,
      input: {},
    });
    expect((await fetch(url)).status).toBe(404);
  });

  test("takes a prediction and loses its answer: paid for once", async () => {
    double.next("submit", { kind: "lost" });
    await expect(post()).rejects.toThrow();
    expect(double.paid()).toHaveLength(1);
    double.finish();
    expect((await client.predictions.list()).results).toMatchObject([{ status: "succeeded" }]);
  });

  test("logs grow with the steps", async () => {
    const { id } = await create();
    expect((await client.predictions.get(id)).logs).toContain("0%");
    expect((await client.predictions.get(id)).logs).toContain("50%");
  });
});
