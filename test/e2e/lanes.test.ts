import { afterAll, expect, test } from "vitest";
import { openSocket } from "../support/caller-socket.ts";
import { chat, upstreamKeys } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    upstreams: {
      ...usual.upstreams,
      keyed: {
        ...usual.upstreams.main,
        apiKeyEnv: undefined,
        apiKeyEnvs: ["UP_KEY", "BACKUP_KEY"],
      },
    },
    models: [...usual.models, chat("keyed", { upstream: "keyed", upstreamModel: "up-model" })],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
ownWorldOnly();

const keysOf = (seen: ReturnType<typeof world.play>) =>
  seen.map(({ headers }) => headers.authorization);

/** Asks in a conversation, and answers the key with which its upstream was asked. */
async function keyFor(conversation: string, input: unknown = "Hi"): Promise<string | undefined> {
  const seen = world.play();
  const body = { model: "keyed", prompt_cache_key: conversation, input };
  expect((await caller.post("/responses", body)).status).toBe(200);
  return keysOf(seen)[0];
}

const conversations = Array.from({ length: 20 }, (_, at) => `c${at}`);

test("conversations are shared by two keys, and each stays with its own", async () => {
  const keys: (string | undefined)[] = [];
  for (const one of conversations) keys.push(await keyFor(one));
  expect(new Set(keys).size).toBe(2);
  for (const [at, one] of conversations.entries()) expect(await keyFor(one)).toBe(keys[at]);
});

test.each(["x-claude-code-session-id", "session-id"])(
  "conversations named by the header %s each stay with one key, and no upstream sees the header",
  async (header) => {
    const keyAt = async (session: string, input: string) => {
      const seen = world.play();
      const headers = { [header]: session };
      const body = { model: "keyed", input, instructions: input };
      expect((await caller.post("/responses", body, { headers })).status).toBe(200);
      expect(JSON.stringify(seen)).not.toContain(session);
      return keysOf(seen)[0];
    };
    const keys = new Set<string | undefined>();
    for (const one of conversations.map((name) => `session-${name}`)) {
      const key = await keyAt(one, "Hi");
      expect(await keyAt(one, "Something else")).toBe(key);
      keys.add(key);
    }
    expect(keys.size).toBe(2);
  },
);

test("a WebSocket's chain stays with the key of its first request, whatever its instructions", async () => {
  const keys = new Set<string | undefined>();
  for (const one of conversations) {
    using socket = await openSocket(caller.baseUrl, caller.key);
    // Nothing is known of the conversation yet.
    const warmUp = await socket.create({ model: "keyed", input: [], generate: false });
    let previous_response_id = warmUp.at(-1)?.response?.id;
    const keyAt = async (instructions: string) => {
      const seen = world.play();
      const ask = { model: "keyed", instructions, input: one, previous_response_id };
      previous_response_id = (await socket.create(ask)).at(-1)?.response?.id;
      return keysOf(seen)[0];
    };
    const first = await keyAt("Be kind.");
    expect([await keyAt("Be brief."), await keyAt(one)]).toEqual([first, first]);
    keys.add(first);
  }
  expect(keys.size).toBe(2);
});

test("opaque state goes back with the key that it was made with, in any conversation", async () => {
  const made = new Map<string | undefined, string>();
  for (const one of conversations) {
    const state = `gAAAA-state-of-${one}`;
    const seen = world.play({ kind: "ok", encrypted: state });
    await caller.post("/responses", { model: "keyed", prompt_cache_key: one, input: "Hi" });
    made.set(keysOf(seen)[0], state);
  }
  expect(made.size).toBe(2);
  for (const [key, state] of made) {
    const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: state };
    const input = [item, { role: "user", content: "Go on." }];
    for (const one of conversations) expect(await keyFor(one, input)).toBe(key);
  }
});

test("a refused key is left alone, and its conversations go on with the other", async () => {
  const homes = new Map<string, string | undefined>();
  for (const one of conversations) homes.set(one, await keyFor(one));
  const refused = homes.get("c0");
  world.play();
  world.upstream.script(({ headers }) =>
    headers.authorization === refused ? { kind: "status", status: 401 } : { kind: "ok" },
  );
  const body = { model: "keyed", prompt_cache_key: "c0", input: "Hi" };
  expect((await caller.post("/responses", body)).status).toBe(200);
  expect(world.upstream.requests).toHaveLength(2);
  await theLastRecordNames(refused);
  for (const one of conversations) expect(await keyFor(one)).not.toBe(refused);
});

/** The operator's record of the last request names the lane whose key was refused. The caller's do not. */
async function theLastRecordNames(refused: string | undefined): Promise<void> {
  await caller.settled();
  const { accountId } = caller;
  const asked = { accountId, onlyMoney: true, pageSize: 1, forOperator: true };
  const { lines } = await world.admin.billing.listLines(asked);
  const [failed, answered] =
    refused === `Bearer ${upstreamKeys.UP_KEY}` ? ["keyed", "keyed#2"] : ["keyed#2", "keyed"];
  expect(lines[0]?.record).toMatchObject({
    upstream: answered,
    failedTries: [{ lane: failed, kind: "key_refused", status: 401 }],
  });
  const own = await caller.get("/requests?limit=1");
  expect(own.json.data).toHaveLength(1);
  const { id } = own.json.data[0];
  const shown = await caller.get(`/generation?id=${id}`);
  for (const { status, text } of [own, shown]) {
    expect(status).toBe(200);
    expect(text).not.toMatch(/keyed#|key_refused|failed_?tries/i);
  }
}
