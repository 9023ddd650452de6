import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { refusalOf } from "../e2e/caller.ts";
import { creditsOf, download, ended, startMediaWorld, submit, upload } from "../e2e/media-world.ts";
import { isOwnWorld, ownWorldOnly } from "../e2e/world.ts";
import { formOf } from "../support/scripted-media-upstream.ts";
import { until } from "../support/until.ts";

const { world, media, png, ...rest } = await startMediaWorld({
  env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" },
});
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();
beforeEach(() => {
  if (isOwnWorld) media.requests.length = 0;
});

const picture = { model: "scripted-image", prompt: "a boat" };

/** A public image, and the number of its requests. */
async function startHost() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(200, { "content-type": "image/png" }).end(png);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: (path: string) => `http://127.0.0.1:${port}/${path}`,
    asked,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

describe("a caller without credits", () => {
  test("makes us fetch nothing and store nothing", async () => {
    await using host = await startHost();
    const caller = await world.caller();
    const dataUri = `data:image/png;base64,${png.toString("base64")}`;
    for (const image_url of [host.url("a.png"), dataUri, "http://127.0.0.1:1/none.png"]) {
      const answer = await caller.post("/images/generations", {
        ...picture,
        input_reference: { image_url },
      });
      expect(refusalOf(answer)).toBe("402 insufficient_quota insufficient_credits null");
    }
    expect(host.asked).toEqual([]);
    expect((await caller.get("/files")).json.data).toEqual([]);
  });

  test("for a second job makes us fetch for one alone, however many are asked for at once", async () => {
    await using host = await startHost();
    const caller = await world.caller({ credits: 1n });
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        caller.post("/images/generations", {
          ...picture,
          input_reference: { image_url: host.url(`${index}.png`) },
        }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array(7).fill(402)]);
    expect(host.asked).toHaveLength(1);
  });

  test("gets back what was held for a reference that is no image", async () => {
    const caller = await world.caller({ credits: 1n });
    const input_reference = { image_url: "http://127.0.0.1:1/none.png" };
    const answer = await caller.post("/images/generations", { ...picture, input_reference });
    expect(answer.status).toBe(400);
    expect(await creditsOf(caller)).toMatchObject({ available: 1, reserved: 0, spendable: 1 });
    await ended(caller, await submit(caller, "images", picture));
  });
});

describe("a generated image as a reference", () => {
  /** A caller with a finished image. */
  async function withPicture() {
    const caller = await world.caller({ credits: 100n });
    const made = await ended(caller, await submit(caller, "images", picture));
    media.requests.length = 0;
    return { caller, made, output: made.images[0] };
  }
  const byId = (fileId: string) => ({ input_reference: { file_id: fileId } });
  const byUrl = (image_url: string) => ({ input_reference: { image_url } });

  test("goes upstream by its id, by its list place and by its URL, without a copy", async () => {
    const { caller, output } = await withPicture();
    const { bytes } = await download(caller, output.url);
    for (const reference of [
      byId(output.id),
      { referenceFileIds: [output.id] },
      byUrl(output.url),
      byUrl(`${output.url}?download=1`),
    ]) {
      media.requests.length = 0;
      const job = await submit(caller, "images", { ...picture, ...reference });
      expect(await ended(caller, job)).toMatchObject({ status: "completed", creditsCharged: 1 });
      const [edit] = media.seen("POST /images/edits");
      const sent = edit && (await formOf(edit)).get("image");
      if (!(sent instanceof File)) throw new Error("no file was sent");
      expect(Buffer.from(await sent.arrayBuffer()).equals(bytes)).toBe(true);
    }
    expect((await caller.get("/files")).json.data).toEqual([]);
    const film = { model: "svc-video-1-5", prompt: "waves", ...byId(output.id) };
    expect(await submit(caller, "videos", film)).toMatchObject({ mode: "i2v" });
  });

  test("of another key, of another account, of a wrong job, or of no account is the same 400", async () => {
    const { caller, made, output } = await withPicture();
    const sibling = await world.withKey(caller, {});
    const stranger = await world.caller({ credits: 10n });
    const other = await ended(caller, await submit(caller, "images", picture));
    const bodies = (fileId: string, url: string) => [
      { ...picture, ...byId(fileId) },
      { ...picture, ...byUrl(url) },
    ];
    const nothing = "file_aaaaaaaaaaaaaaaaaaaaaaaa";
    const nowhere = output.url.replace(output.id, nothing);
    for (const who of [sibling, stranger]) {
      const [theirs, nobodys] = await Promise.all(
        [bodies(output.id, output.url), bodies(nothing, nowhere)].map((list) =>
          Promise.all(list.map((body) => who.post("/images/generations", body))),
        ),
      );
      for (const [index, answer] of (theirs ?? []).entries()) {
        expect(answer.status).toBe(400);
        expect(answer.json.error.code).toBe("reference_not_found");
        expect(answer.text).toBe(nobodys?.[index]?.text);
      }
    }
    const wrongJob = output.url.replace(made.id, other.id);
    const wrongs = [
      wrongJob,
      nowhere,
      `${world.baseUrl}/models`,
      `${world.baseUrl}/files/${output.id}/content`.replace(output.id, nothing),
    ];
    for (const url of wrongs) {
      const answer = await caller.post("/images/generations", { ...picture, ...byUrl(url) });
      expect(refusalOf(answer)).toBe(
        "400 invalid_request_error reference_not_found input_reference.image_url",
      );
    }
    expect(await creditsOf(sibling)).toMatchObject({ reserved: 0 });
  });

  test("an upload by its own URL is that upload, for the whole account and no other", async () => {
    const caller = await world.caller({ credits: 10n });
    const sibling = await world.withKey(caller, {});
    const stranger = await world.caller({ credits: 10n });
    const { json: uploaded } = await upload(caller, png);
    const url = `${world.baseUrl}/files/${uploaded.id}/content`;
    await ended(sibling, await submit(sibling, "images", { ...picture, ...byUrl(url) }));
    expect((await caller.get("/files")).json.data).toHaveLength(1);
    const answer = await stranger.post("/images/generations", { ...picture, ...byUrl(url) });
    expect(answer.json.error.code).toBe("reference_not_found");
  });

  test("what is no image is refused as such", async () => {
    const caller = await world.caller({ credits: 100n });
    const film = { model: "text-only", prompt: "waves", seconds: 6, resolution: "480p" };
    const made = await ended(caller, await submit(caller, "videos", film));
    const [video] = made.videos;
    for (const reference of [byId(video.id), byUrl(video.url)]) {
      const answer = await caller.post("/images/generations", { ...picture, ...reference });
      expect(answer.status).toBe(400);
      expect(answer.json.error.code).toBe("invalid_reference_image");
    }
  });

  test("is kept while a job needs it, though its own time is over", async () => {
    const { caller, output } = await withPicture();
    const day = 24 * 3_600_000;
    await world.later(29.9 * day);
    media.always("POST /images/edits", { kind: "status", status: 429 });
    const job = await submit(caller, "images", { ...picture, ...byId(output.id) });
    await until("the job to wait", async () => {
      const { json } = await caller.get(`/images/generations/${job.id}`);
      return media.seen("POST /images/edits").length > 0 && json.status === "queued";
    });
    await world.later(0.5 * day);
    media.always("POST /images/edits", undefined);
    await world.later(300_000);
    expect(await ended(caller, job)).toMatchObject({ status: "completed" });
  });
});
