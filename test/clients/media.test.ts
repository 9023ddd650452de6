import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { download, ended, sha256Of, startMediaWorld } from "../e2e/media-world.ts";
import { isOwnWorld, ownWorldOnly } from "../e2e/world.ts";

const { world, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

let caller: Caller;
let client: OpenAI;
beforeAll(async () => {
  if (!isOwnWorld) return;
  caller = await world.caller({ credits: 10n });
  client = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 0 });
});
const picture = (name = "boat.png") => toFile(png, name, { type: "image/png" });
const gone = (work: Promise<unknown>) =>
  expect(work).rejects.toMatchObject({
    constructor: OpenAI.NotFoundError,
    status: 404,
    code: "file_not_found",
    type: "not_found_error",
  });

describe("client.files", () => {
  test("create, retrieve, content, delete", async () => {
    const file = await client.files.create({ file: await picture(), purpose: "vision" });
    expect(file).toMatchObject({
      ...{ object: "file", bytes: png.length, filename: "boat.png", purpose: "vision" },
      status: "processed",
    });
    expect(file.created_at * 1_000).toBeGreaterThan(world.now() - 60_000);
    expect(await client.files.retrieve(file.id)).toMatchObject({ ...file });
    const content = await client.files.content(file.id);
    expect(content.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await content.arrayBuffer()).equals(png)).toBe(true);
    expect(await client.files.delete(file.id)).toEqual({
      ...{ id: file.id, object: "file", deleted: true },
    });
    await gone(client.files.retrieve(file.id));
    await gone(client.files.content(file.id).asResponse());
    await gone(client.files.delete(file.id));
  });

  test("list, through all its pages", async () => {
    const made: string[] = [];
    for (let index = 0; index < 5; index++) {
      const file = await picture(`${index}.png`);
      made.push((await client.files.create({ file, purpose: "user_data" })).id);
      await world.later(1_000);
    }
    const listed: string[] = [];
    const query = { limit: 2, order: "asc", purpose: "user_data" } as const;
    for await (const { id } of client.files.list(query)) listed.push(id);
    expect(listed).toEqual(made);
    const page = await client.files.list({ purpose: "user_data", limit: 4 });
    expect(page.data.map(({ id }) => id)).toEqual(made.slice(1).toReversed());
    expect(page.hasNextPage()).toBe(true);
  });

  test("what is no image is a BadRequestError that names the field", async () => {
    const file = await toFile(Buffer.from("no picture"), "a.png");
    await expect(client.files.create({ file, purpose: "vision" })).rejects.toMatchObject({
      constructor: OpenAI.BadRequestError,
      ...{ status: 400, code: "invalid_image", param: "file", type: "invalid_request_error" },
    });
  });

  test("an idempotency key makes one file", async () => {
    // The SDK has an option of that name, but sends no header for it.
    const options = { headers: { "idempotency-key": "k" } };
    const create = async () =>
      client.files.create({ file: await picture(), purpose: "vision" }, options);
    const [first, second] = [await create(), await create()];
    expect(second.id).toBe(first.id);
  });
});

test("a job with fetch: a file of the SDK as reference, poll, download", async () => {
  const file = await client.files.create({ file: await picture(), purpose: "vision" });
  const headers = {
    authorization: `Bearer ${caller.key}`,
    "content-type": "application/json",
    "idempotency-key": "job-1",
  };
  const submit = () =>
    fetch(`${world.baseUrl}/images/generations`, {
      method: "POST",
      headers,
      body: JSON.stringify({
        ...{ model: "small-image", prompt: "the same, at night", size: "64x64" },
        input_reference: { file_id: file.id },
      }),
    });
  const [response, retry] = [await submit(), await submit()];
  expect([response.status, retry.status]).toEqual([202, 202]);
  const [job, same] = [await response.json(), await retry.json()] as { id: string }[];
  expect(same?.id).toBe(job?.id);
  const done = await ended(caller, job);
  expect(done).toMatchObject({ status: "completed", creditsCharged: 1 });
  const { status, bytes } = await download(caller, `${done.images[0].url}?download=1`);
  expect([status, sha256Of(bytes)]).toEqual([200, done.images[0].sha256]);
});
