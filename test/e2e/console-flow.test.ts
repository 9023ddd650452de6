import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { askConsole, type ConsoleRequest, ownPage, signIn } from "../edge/console-client.ts";
import type { Caller } from "./caller.ts";
import { takeEvents } from "./sse.ts";
import { isOwnWorld, startWorld, type World } from "./world.ts";

/** Milliseconds. A mesh of two processes for each role starts on a busy machine. */
const setUpMs = 180_000;
/** Milliseconds for the whole flow, with an image, on a busy machine. */
const flowMs = 240_000;
/** Milliseconds within which a deleted key is refused everywhere. */
const revokedWithinMs = 1_000;

let world: World;
/** The address of every gateway, for requests that take turns. A server that runs already has one address, perhaps for several gateways. */
let gateways: URL[];
/** A key that may make keys. */
let owner: Caller;
beforeAll(async () => {
  // Its models are built in, like those of a new installation.
  const catalog = await readFile(join(import.meta.dirname, "../../deploy/catalog.yaml"), "utf8");
  world = await startWorld({ catalog });
  gateways = (isOwnWorld ? world.baseUrls : [world.baseUrl]).map((url) => new URL(url));
  const begun = await world.caller({ credits: 100n });
  const scopes = [Scope.KEYS, Scope.TEXT, Scope.IMAGES, Scope.FILES, Scope.BILLING, Scope.MODELS];
  owner = isOwnWorld ? await world.withKey(begun, { scopes }) : begun;
}, setUpMs);
afterAll(() => world?.[Symbol.asyncDispose]());

let turn = 0;
const nextGateway = () => gateways[turn++ % gateways.length] as URL;
const ask = (path: string, given: ConsoleRequest = {}) =>
  askConsole(nextGateway(), `/console/api${path}`, given);
const post = (path: string, body: unknown, given: ConsoleRequest = {}) =>
  ask(path, { method: "POST", body, ...given, headers: { ...ownPage, ...given.headers } });

test(
  "sign-in, keys, playground, previews and usage, each request at the next gateway",
  async () => {
    const ownerCookie = await signIn(nextGateway(), owner.key);
    const headers = { "x-console-secret": owner.key };
    const made = await post("/v1/keys", { name: "flow" }, { cookie: ownerCookie, headers });
    expect(made.status, made.text).toBe(201);
    const keyId = made.json.data.id;
    const cookie = await signIn(nextGateway(), made.json.key);
    for (const _ of gateways) {
      const { json } = await ask("/session", { cookie });
      expect(json).toMatchObject({ object: "console.session", keyId });
    }

    // The playground's chat: the estimate of its price, then events.
    const text = { model: "chat-1", input: "hi" };
    const price = await post("/v1/responses/input_tokens", text, { cookie });
    expect(price.json.input_tokens).toBeGreaterThan(0);
    const streamed = await post("/v1/responses", { ...text, stream: true }, { cookie });
    expect(streamed.headers["content-type"]).toContain("text/event-stream");
    const { events } = takeEvents(streamed.text);
    const end = JSON.parse(events.findLast(({ data }) => data.startsWith("{"))?.data ?? "{}");
    expect(end).toMatchObject({ type: "response.completed" });
    const cost = end.response.usage.costUsdMicros;

    // An uploaded reference, and an image: its events, then both previews.
    const form = new FormData();
    form.set("purpose", "vision");
    form.set("file", new Blob([new Uint8Array(await samplePng(64, 64))]), "a.png");
    const upload = new Response(form);
    const file = await post("/v1/files", new Uint8Array(await upload.arrayBuffer()), {
      cookie,
      headers: { "content-type": upload.headers.get("content-type") ?? "" },
    });
    expect(file.status, file.text).toBe(200);
    const job = await post(
      "/v1/images/generations",
      { model: "image-1", prompt: "a fox" },
      { cookie },
    );
    expect(job.status, job.text).toBe(202);
    const followed = await ask(`/v1/jobs/${job.json.id}/events`, { cookie });
    const last = takeEvents(followed.text).events.findLast(({ data }) => data.startsWith("{"));
    const done = JSON.parse(last?.data ?? "{}");
    expect(done).toMatchObject({ id: job.json.id, status: "completed" });
    const picture = new URL(done.images[0].url).pathname;
    expect(picture).toMatch(/^\/console\/api\/v1\/images\//);
    for (const path of [`/console/api/v1/files/${file.json.id}/content`, picture]) {
      for (const _ of gateways) {
        expect((await askConsole(nextGateway(), path, { cookie })).status, path).toBe(200);
        expect((await askConsole(nextGateway(), path)).status).toBe(401);
      }
    }

    // The numbers are the same at every gateway.
    const now = Math.floor(world.now() / 1_000);
    for (const _ of gateways) {
      const { json } = await ask(`/v1/usage?start_time=${now - 86_400}&limit=31`, { cookie });
      // biome-ignore lint/suspicious/noExplicitAny: an answer's results.
      const results = json.data.flatMap((bucket: any) => bucket.results);
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      const sum = (name: string) => results.reduce((all: number, one: any) => all + one[name], 0);
      expect([sum("num_model_requests"), sum("spentUsdMicros"), sum("spentCredits")]).toEqual([
        ...[2, cost, done.creditsCharged],
      ]);
      const requests = await ask("/v1/requests", { cookie });
      expect(requests.json.data.map(({ id }: { id: string }) => id)).toEqual([
        ...[job.json.id, end.response.id],
      ]);
      const entries = await ask("/v1/billing/entries?kind=charge", { cookie });
      expect(entries.json.data.map(({ amount }: { amount: number }) => amount)).toEqual([
        ...[-done.creditsCharged, -cost],
      ]);
      expect((await ask("/v1/key", { cookie })).json.data.spentUsdMicros).toBe(cost);
    }

    // The key is deleted at one gateway, and refused within a second at all. Its owner's session lasts until its sign-out.
    const revoked = await ask(`/v1/keys/${keyId}`, {
      ...{ method: "DELETE", cookie: ownerCookie, headers: ownPage },
    });
    expect(revoked.status).toBe(200);
    const app = world.holding(made.json.key);
    await delay(revokedWithinMs);
    for (let n = 0; n < gateways.length * 2; n++) {
      expect((await ask("/session", { cookie })).status).toBe(401);
      expect((await ask("/v1/models", { cookie })).status).toBe(401);
      expect((await app.get("/models")).status).toBe(401);
      expect((await ask("/session", { cookie: ownerCookie })).status).toBe(200);
    }
    const left = await ask("/session", {
      ...{ method: "DELETE", cookie: ownerCookie, headers: ownPage },
    });
    expect(left.status).toBe(204);
    for (const _ of gateways) {
      expect((await ask("/session", { cookie: ownerCookie })).status).toBe(401);
    }
  },
  flowMs,
);
