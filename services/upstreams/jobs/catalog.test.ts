import { describe, expect, test } from "vitest";
import { declarationFaults, declaredCallFaults } from "./catalog.ts";
import { declarationSchema } from "./declaration.ts";

const usual = {
  create: { post: "/videos", take: { id: "id" } },
  poll: { get: "/videos/${id}", state: "status" },
  states: { queued: "running", done: "done", failed: "failed" },
};

/** Faults of a declaration, each with its path and its words. */
function faultsOf(more: object): string[] {
  const parsed = declarationSchema.safeParse({ ...usual, ...more });
  const found = parsed.success
    ? declarationFaults(parsed.data, "https://api.example.com/v1")
    : parsed.error.issues;
  return found.map(({ path, message }) => `${path.map(String).join(".")}: ${message}`);
}

const at = (path: string) => ({ poll: { get: path, state: "status" } });
const unknownName = "names task, which nothing takes before";
const beginning = "must begin with one /, or be wholly a URL that an answer gave, like ${url}";
const headers = (name: string, value = "x") => ({ headers: { [name]: value } });
const ours = "is a header that is made here";

test("a declaration without faults has none", () => {
  expect(faultsOf({})).toEqual([]);
  expect(faultsOf(headers("x-trace", "a-${uuid}"))).toEqual([]);
});

describe("a fault of a declaration is found when the catalog is loaded", () => {
  test.each<[string, object, string]>([
    ["an unknown key", { polls: {} }, ': Unrecognized key: "polls"'],
    ["an unknown method", { create: { patch: "/a" } }, 'create: Unrecognized key: "patch"'],
    ["an unknown meaning", { answers: { gone: {} } }, 'answers: Unrecognized key: "gone"'],
    ["an unknown state's meaning", { states: { a: "over" } }, "states.a: Invalid option"],
    [
      "a place that is none",
      { poll: { get: "/a/${id}", state: "a..b" } },
      "poll.state: must be a path like data.task_id",
    ],
    [
      "a place of a mark that is none",
      { answers: { refused: { "a b": ["x"] } } },
      "answers.refused.a b: Invalid key",
    ],
    ["a name that nothing takes", at("/videos/${task}/${id}"), `poll.get: ${unknownName}`],
    [
      "such a name in a body",
      { cancel: { post: "/cancel", body: { id: "${task}" } } },
      `cancel.body.id: ${unknownName}`,
    ],
    [
      "a name that is taken twice",
      { poll: { get: "/videos/${id}", state: "status", take: { id: "a" } } },
      "poll.take.id: is a name that is there already",
    ],
    [
      "a name of ours",
      { create: { post: "/a", take: { id: "id", job: "id" } } },
      "create.take.job: is a name that is there already",
    ],
    [
      "two methods",
      { create: { post: "/a", put: "/a", take: { id: "id" } } },
      "create: must have one path",
    ],
    ["no method", { result: {} }, "result: must have one of get, post, put, delete"],
    [
      "a beginning that sends no body",
      { create: { get: "/a", take: { id: "id" } } },
      "create: must be post or put, which send the model's input",
    ],
    ["no state that is done", { states: { a: "running" } }, "states: has no state that is done"],
    ["no state that is running", { states: { a: "done" } }, "states: has no state that is running"],
    ["no states", { states: undefined }, "states: is required by poll"],
    ["states without a look", { poll: undefined }, "states: needs poll, which tells the state"],
    [
      "looks that are all the same",
      at("/videos"),
      "poll: does not tell tasks apart: name what create takes, or ${job}",
    ],
    [
      "a cancel in a state that is none",
      { cancel: { post: "/a", when: ["gone"] } },
      "cancel.when.0: is none of states",
    ],
    [
      "a cancel that may delete a video",
      { cancel: { delete: "/videos/${id}" } },
      "cancel: needs when: of a task that has ended, delete may remove the output",
    ],
    [
      "null beside refused",
      { answers: { failed: { "a.b": [null] } } },
      "answers.failed.a.b.0: null, for what is missing, is for refused alone",
    ],
    [
      "one pattern with two meanings",
      { answers: { refused: { code: ["A"] }, busy: { code: ["a"] } } },
      "answers.busy.code.0: means refused already",
    ],
    ["too frequent looks", { poll: { ...usual.poll, everyMs: 499 } }, "poll.everyMs: Too small"],
    ["too rare looks", { poll: { ...usual.poll, everyMs: 60_001 } }, "poll.everyMs: Too big"],
    [
      "a token that lasts too long",
      { auth: { jwt: "HS256", issuerEnv: "A", seconds: 3_601 } },
      "auth.seconds: Too big",
    ],
    ["a token without an issuer", { auth: { jwt: "HS256", seconds: 60 } }, "auth: Invalid input"],
    [
      "a key in place of a variable",
      { auth: { jwt: "HS256", issuerEnv: "a-b", seconds: 600 } },
      "auth.issuerEnv: must be the name of a variable, not a key",
    ],
  ])("%s", (_, more, expected) => {
    const found = faultsOf(more);
    expect(found.join("\n")).toContain(expected);
    expect(found).toHaveLength(1);
  });

  test.each<[string, string]>([
    ["videos/${id}", beginning],
    ["//evil.example.com/${id}", beginning],
    ["https://evil.example.com/${id}", beginning],
    ["@evil.example.com/${id}", beginning],
    ["/../${id}", "must have no . or .."],
    ["/%2E%2e/${id}", "must have no . or .."],
    ["/a/${id}#b", "must have no blank, # or $ beside ${name}"],
    ["/a b/${id}", "must have no blank, # or $ beside ${name}"],
    ["/a\\b/${id}", "must have no blank, # or $ beside ${name}"],
    ["/a/${id}/$b", "must have no blank, # or $ beside ${name}"],
    ["/a?${id}=1", "may have a ${name} in the value of a query alone"],
  ])("the path %s", (path, message) => {
    expect(faultsOf(at(path))).toEqual([`poll.get: ${message}`]);
    const check = faultsOf({ check: { get: path.replaceAll("${id}", "1") } });
    // Without its name, the query is a plain one.
    expect(check).toEqual(path.includes("?") ? [] : [`check.get: ${message}`]);
  });

  test.each<[string, object, string]>([
    ...[
      "Authorization",
      "cookie",
      "Host",
      "Content-Type",
      "Accept-Encoding",
      "X-Forwarded-For",
    ].map((name): [string, object, string] => [name, headers(name), `headers.${name}: ${ours}`]),
    [
      "the key's own header",
      { auth: { header: "x-key" }, ...headers("X-Key") },
      `headers.X-Key: ${ours}`,
    ],
    [
      "a value like a key",
      headers("x-a", "sk-0123"),
      "headers.x-a: looks like a key; a key belongs into apiKeyEnv",
    ],
    [
      "a header of a step",
      { create: { ...usual.create, headers: { Host: "a" } } },
      `create.headers.Host: ${ours}`,
    ],
    [
      "an idempotency key in the key's place",
      { create: { ...usual.create, key: "Authorization" } },
      `create.key: ${ours}`,
    ],
    [
      "a value that is no constant",
      headers("x-a", "${job}"),
      "headers.x-a: may name ${uuid} alone, which is another UUID in each request",
    ],
    ["a key in a header of a connection", { auth: { header: "Host" } }, `auth.header: ${ours}`],
  ])("the header: %s", (_, more, expected) => {
    expect(faultsOf(more)).toEqual([expected]);
  });

  test.each<[string, string]>([
    ["http://api.example.com", "must be https"],
    ["https://api.example.com/v1", "must have no path, user or query"],
    ["https://user@api.example.com", "must have no path, user or query"],
    ["https://*.com", "must have two names or more behind *"],
    ["https://a.*.com", "must be an origin like https://api.example.com or https://*.example.com"],
    ["https://*", "must be an origin like https://api.example.com or https://*.example.com"],
  ])("the origin %s", (origin, message) => {
    expect(faultsOf({ origins: [origin] })).toEqual([`origins.0: ${message}`]);
  });

  test("files with a key that is none", () => {
    expect(faultsOf({ auth: "none", download: "key" })).toEqual([
      "download: needs a key, and auth is none",
    ]);
  });
});

test.each<[string, object, object, string[]]>([
  ["a call", {}, {}, []],
  [
    "no model",
    {},
    { input: {} },
    ["input: names no model: place ${model} here, or in the path of create"],
  ],
  ["no output", {}, { output: "" }, ["output: is required by its upstream"]],
  [
    "several images of one file",
    { result: { get: "/a/${id}", gives: "file" } },
    { output: "", outputs: 2 },
    [": gives one file, and the model offers several images"],
  ],
])("the call of a model: %s", (_, declared, call, expected) => {
  const declaration = declarationSchema.parse({ ...usual, ...declared });
  const usualCall = { input: { model: "${model}" }, output: "url", outputs: 1 };
  const found = declaredCallFaults(declaration, { ...usualCall, ...call }, (...rest) => rest);
  expect(found.map(({ path, message }) => `${path.join(".")}: ${message}`)).toEqual(expected);
});
