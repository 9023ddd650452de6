import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { committedDescription } from "../../gateway/openapi.ts";
import type { Caller } from "../e2e/caller.ts";
import { send } from "../e2e/key-owners.ts";
import { download, ended, startMediaWorld, submit, upload } from "../e2e/media-world.ts";
import { isOwnWorld, ownWorldOnly } from "../e2e/world.ts";

const { world, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

/** "METHOD path" of every request by a key without a right to the data in question. Paths are below the base URL. */
const asked = new Set<string>();
const askers = new Set<string>();
/** Published for each request of a client in this process. */
const made = "undici:request:create";
function note(message: unknown): void {
  const { request } = message as { request: { method: string; path: string; headers: unknown } };
  const [path = ""] = request.path.split("?");
  if (![...askers].some((key) => `${request.headers}`.includes(key))) return;
  asked.add(`${request.method} ${path.replace(/^\/v1/, "")}`);
}
subscribe(made, note);
afterAll(() => void unsubscribe(made, note));

let owner: Caller;
/** Another account, and another key of the owner's account. */
let strangers: Record<"another account" | "another key", Caller>;
/** The ids of the owner's data. */
const own = { image: "", imageFile: "", video: "", videoFile: "", music: "", musicFile: "" };
const more = { speech: "", speechFile: "", upload: "" };
let outputUrl = "";

beforeAll(async () => {
  if (!isOwnWorld) return;
  owner = await world.caller({ credits: 100n });
  strangers = {
    "another account": await world.caller({ credits: 100n }),
    "another key": await world.withKey(owner, {}),
  };
  for (const { key } of Object.values(strangers)) askers.add(key);
  const bodies = {
    image: ["images", { model: "scripted-image", prompt: "x" }],
    video: ["videos", { model: "text-only", prompt: "x" }],
    music: ["music", { model: "music-1", prompt: "x", mode: "instrumental", title: "x" }],
  } as const;
  for (const kind of ["image", "video", "music"] as const) {
    const [area, body] = bodies[kind];
    const job = await ended(owner, await submit(owner, area, body));
    const [output] = job.images ?? job.videos ?? job.clips;
    own[kind] = job.id;
    own[`${kind}File`] = output.id;
    if (kind === "image") outputUrl = output.url;
  }
  const spoken = { model: "scripted-speech", input: "Hi", voice: "alloy" };
  const { json } = await owner.post("/speech/generations", spoken);
  Object.assign(more, { speech: json.id, speechFile: json.audio.id });
  more.upload = (await upload(owner, png)).json.id;
  // Three kinds of media are made, and music is rendered: most of a second on a free core.
});

/** An id of the same form that never existed. */
const never = (id: string) => id.replace(/[a-z0-9]{8}$/, "00000000");

/** Two paths below the base URL: one with the owner's ids, and the same with an unknown id in the last place. */
const paths: [method: string, path: () => [string, string]][] = [
  ...(["image", "video", "music"] as const).flatMap((kind) => {
    const area = kind === "music" ? "music" : `${kind}s`;
    const job = (id: string) => `/${area}/generations/${id}`;
    const both = (make: (id: string) => string, id: () => string) => () =>
      [make(id()), make(never(id()))] as [string, string];
    const output = (method: string) =>
      [
        method,
        both(
          (id) => `${job(own[kind])}/files/${id}`,
          () => own[`${kind}File`],
        ),
      ] as const;
    return [
      ["GET", both(job, () => own[kind])],
      ["HEAD", both(job, () => own[kind])],
      [
        "GET",
        both(
          (id) => `/jobs/${id}/events`,
          () => own[kind],
        ),
      ],
      [
        "HEAD",
        both(
          (id) => `/jobs/${id}/events`,
          () => own[kind],
        ),
      ],
      output("GET"),
      output("HEAD"),
    ] as [string, () => [string, string]][];
  }),
  ...["GET", "HEAD"].map((method): [string, () => [string, string]] => [
    method,
    () => {
      const path = `/speech/generations/${more.speech}/files/`;
      return [path + more.speechFile, path + never(more.speechFile)];
    },
  ]),
  // The costs of its answers, by their ids.
  ...["GET", "HEAD"].flatMap((method) =>
    [() => own.image, () => more.speech].map((id): [string, () => [string, string]] => [
      method,
      () => [`/generation?id=${id()}`, `/generation?id=${never(id())}`],
    ]),
  ),
];
const uploads: [method: string, make: (id: string) => string][] = [
  ["GET", (id) => `/files/${id}`],
  ["HEAD", (id) => `/files/${id}`],
  ["GET", (id) => `/files/${id}/content`],
  ["HEAD", (id) => `/files/${id}/content`],
  ["GET", (id) => `/files?after=${id}`],
  ["DELETE", (id) => `/files/${id}`],
];

const volatile = /^(?:date|x-request-id|x-ratelimit-(?:remaining|reset)-requests)$/;

/** The part of an answer that is the same for equal requests. */
async function told(caller: Caller, method: string, path: string) {
  const headers = { "if-none-match": "*", range: "bytes=0-0" };
  const answer = await download(caller, path, { method, headers });
  return {
    status: answer.status,
    headers: Object.fromEntries([...answer.headers].filter(([name]) => !volatile.test(name))),
    text: answer.bytes.toString(),
  };
}

describe.each(["another account", "another key"] as const)("to %s", (who) => {
  test("what a key made is as if it never was", async () => {
    expect(paths.length).toBe(24);
    for (const [method, path] of paths) {
      const [theirs, nobodys] = path();
      expect(theirs).not.toBe(nobodys);
      const seen = await told(strangers[who], method, theirs);
      expect([method, theirs, seen.status]).toEqual([method, theirs, 404]);
      expect(seen).toEqual(await told(strangers[who], method, nobodys));
      // Its own key finds it.
      expect((await told(owner, method, theirs)).status).toBeLessThan(400);
    }
  });
});

test.each(["another account", "another key"] as const)(
  "%s neither cancels nor deletes it",
  async (who) => {
    for (const kind of ["image", "video", "music"] as const) {
      const job = (id: string) => `/${kind === "music" ? "music" : `${kind}s`}/generations/${id}`;
      for (const [method, suffix] of [
        ["POST", "/cancel"],
        ["DELETE", ""],
      ] as const) {
        const seen = await told(strangers[who], method, job(own[kind]) + suffix);
        expect([method, kind, seen.status]).toEqual([method, kind, 404]);
        expect(seen).toEqual(await told(strangers[who], method, job(never(own[kind])) + suffix));
      }
      expect((await told(owner, "GET", job(own[kind]))).status).toBe(200);
    }
  },
);

test("to another account an upload is as if it never was", async () => {
  const stranger = strangers["another account"];
  for (const [method, make] of uploads) {
    const seen = await told(stranger, method, make(more.upload));
    expect(seen.status).toBeGreaterThanOrEqual(400);
    expect(seen).toEqual(await told(stranger, method, make(never(more.upload))));
  }
  expect((await told(owner, "GET", `/files/${more.upload}`)).status).toBe(200);
});

test("so is it as a reference, by id or by the URL of an output", async () => {
  for (const stranger of Object.values(strangers)) {
    const ask = async (input_reference: object) => {
      const body = { model: "scripted-image", prompt: "x", input_reference };
      const { status, json } = await stranger.post("/images/generations", body);
      return { status, json };
    };
    const urls = [outputUrl, outputUrl.replace(own.imageFile, never(own.imageFile))];
    const [theirs, nobodys] = await Promise.all(urls.map((image_url) => ask({ image_url })));
    expect(theirs?.status).toBe(400);
    expect(theirs).toEqual(nobodys);
    const ids = [own.imageFile, never(own.imageFile)];
    const [file, none] = await Promise.all(ids.map((file_id) => ask({ file_id })));
    expect(file?.json.error).toMatchObject({ code: "reference_not_found" });
    expect(file).toEqual(none);
  }
});

test("so is it as an image of a text request", async () => {
  const responses = (file_id: string) => {
    const content = [{ type: "input_image", file_id }];
    return { model: "scripted", input: [{ role: "user", content }] };
  };
  const chat = (file_id: string) => {
    const content = [{ type: "file", file: { file_id } }];
    return { model: "scripted", messages: [{ role: "user", content }] };
  };
  const video = (file_id: string) => {
    return { model: "svc-video-1-5", prompt: "x", input_reference: { file_id } };
  };
  for (const [path, body] of [
    ["/responses", responses],
    ["/responses/input_tokens", responses],
    ["/responses/compact", responses],
    ["/chat/completions", chat],
    ["/videos/generations", video],
  ] as const) {
    const ask = async (id: string) => {
      const { status, json } = await strangers["another account"].post(path, body(id));
      return { status, json };
    };
    const seen = await ask(more.upload);
    expect([path, seen.status]).toEqual([path, 400]);
    expect(seen).toEqual(await ask(never(more.upload)));
  }
});

test("an idempotency key is its API key's own", async () => {
  const options = { idempotencyKey: "the same for all" };
  const body = { model: "scripted-image", prompt: "x" };
  const jobs = [];
  for (const caller of [owner, ...Object.values(strangers)]) {
    const { status, json, headers } = await caller.post("/images/generations", body, options);
    expect([status, headers.get("idempotency-replayed")]).toEqual([202, null]);
    jobs.push(json.id);
  }
  expect(new Set(jobs).size).toBe(3);
});

test("a key is as if it never was, also to a key that manages another account's", async () => {
  const scopes = [Scope.KEYS];
  const manager = await world.withKey(owner, { scopes });
  const stranger = await world.withKey(strangers["another account"], { scopes });
  askers.add(stranger.key);
  const before = (await manager.get(`/keys/${owner.keyId}`)).json.data;
  const calls: [method: string, suffix: string, body?: object][] = [
    ["GET", ""],
    ["PATCH", "", { name: "theirs" }],
    ["POST", "/rotate", {}],
    ["DELETE", ""],
  ];
  for (const [method, suffix, body] of calls) {
    const ask = async (id: string) => {
      const { status, json } = await send(stranger, method, `/keys/${id}${suffix}`, body);
      return { status, json };
    };
    const seen = await ask(owner.keyId);
    expect([method, suffix, seen.status]).toEqual([method, suffix, 404]);
    expect(seen).toEqual(await ask(never(owner.keyId)));
  }
  const created = await stranger.post("/keys", { name: "theirs", scopes: ["keys"] });
  expect(created.status).toBe(201);
  expect((await manager.get(`/keys/${created.json.data.id}`)).status).toBe(404);
  expect((await stranger.get("/keys?limit=100")).text).not.toContain(owner.keyId);
  const { name, label } = before;
  const after = (await manager.get(`/keys/${owner.keyId}`)).json.data;
  expect(after).toMatchObject({ name, label, updated_at: null });
});

test("usage, requests, entries and holds are a key's own, and with `usage:read-all` an account's own", async () => {
  const yesterday = Math.floor(world.now() / 1_000) - 86_400;
  const lists = [
    `/usage?start_time=${yesterday}&group_by[]=api_key_id`,
    `/usage?start_time=${yesterday}&group_by[]=api_key_id&format=csv`,
    "/requests?limit=100",
    "/billing/entries?kind=charge&limit=100",
    "/billing/entries?kind=charge&format=csv",
    "/billing/entries?kind=charge&format=jsonl",
    "/billing/holds",
  ];
  const scopes = [Scope.BILLING, Scope.USAGE_READ_ALL];
  const all = await world.withKey(strangers["another account"], { scopes });
  for (const list of lists) {
    if (list !== "/billing/holds") expect((await owner.get(list)).text).toContain(owner.keyId);
    for (const stranger of [...Object.values(strangers), all]) {
      const { status, text } = await stranger.get(list);
      expect([list, status]).toEqual([list, 200]);
      for (const id of [owner.keyId, own.image, more.speech]) expect(text).not.toContain(id);
    }
  }
  // A page's cursor shows nothing in another account.
  const { nextCursor } = (await owner.get("/requests?limit=1")).json;
  expect(nextCursor).toEqual(expect.any(String));
  for (const list of ["/requests", "/billing/entries"]) {
    const { text } = await all.get(`${list}?after=${encodeURIComponent(nextCursor)}`);
    expect(text).not.toContain(owner.keyId);
  }
});

test("lists are a key's own jobs and an account's own files", async () => {
  const [account, key] = Object.values(strangers) as [Caller, Caller];
  for (const stranger of [account, key]) {
    const { text } = await stranger.get("/jobs?limit=100");
    for (const id of [own.image, own.video, own.music]) expect(text).not.toContain(id);
  }
  expect((await account.get("/files")).json.data).toEqual([]);
  const cursor = (await owner.get("/jobs?limit=1")).json.nextCursor;
  const { json } = await account.get(`/jobs?cursor=${encodeURIComponent(cursor)}`);
  expect(JSON.stringify(json)).not.toContain(own.image);
});

test("a balance, its alerts and a key's own figures are the asking one's", async () => {
  const scopes = [Scope.KEYS, Scope.BILLING];
  const manager = await world.withKey(owner, { scopes });
  const stranger = await world.withKey(strangers["another account"], { scopes });
  askers.add(stranger.key);
  const alerts = { lowBalanceUsdMicros: 4_321 };
  expect((await send(manager, "PATCH", "/billing/alerts", alerts)).status).toBe(200);
  expect((await stranger.get("/billing/alerts")).json.lowBalanceUsdMicros).toBeNull();
  const theirs = { lowBalanceUsdMicros: 1 };
  expect((await send(stranger, "PATCH", "/billing/alerts", theirs)).status).toBe(200);
  expect((await owner.get("/billing/alerts")).json).toMatchObject(alerts);
  const [mine, others] = [await owner.get("/billing"), await stranger.get("/billing")];
  expect(others.json.credits.monthSpent).not.toBe(mine.json.credits.monthSpent);
  const spentBy = async (who: Caller) => (await who.get("/credits")).json.data.total_usage;
  expect([await spentBy(stranger), await spentBy(owner)]).toEqual([0, expect.any(Number)]);
  expect(await spentBy(owner)).toBeGreaterThan(0);
  for (const other of Object.values(strangers)) {
    const { data } = (await other.get("/key")).json;
    expect(data).toMatchObject({ id: other.keyId, spentUsdMicros: 0 });
  }
});

/** Routes whose requests name nothing that another caller made. */
const selfContained = [
  ...["GET /models", "GET /models/{model}", "POST /files", "POST /images/edits"],
  ...["POST /music/generations", "POST /speech/generations", "POST /audio/speech"],
  ...["POST /audio/transcriptions", "POST /embeddings", "POST /messages/count_tokens"],
  // A chain names responses of its own socket alone.
  "GET /responses",
];
/** Tested in test/e2e/webhooks.test.ts, where there is a receiver. */
const withReceiver = [
  ...["GET /webhooks", "POST /webhooks/{webhookId}/retry"],
  ...["GET /webhooks/secret", "POST /webhooks/secret/rotate"],
];

/** Tested in test/e2e/messages.test.ts: thinking that another account got is refused. */
const withThinking = ["POST /messages"];

// This test is the last, because it checks the requests of all others.
test("no route of the API is left out", async () => {
  const { paths: described } = JSON.parse(await committedDescription());
  const routes = Object.entries<object>(described).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const isAsked = (route: string) => {
    const pattern = new RegExp(`^${route.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
    // A path that is a route of its own does not count for a route with an id in that place.
    return [...asked].some((one) => one === route || (pattern.test(one) && !routes.includes(one)));
  };
  const left = routes.filter((route) => !isAsked(route));
  expect(left.sort()).toEqual([...selfContained, ...withReceiver, ...withThinking].sort());
});
