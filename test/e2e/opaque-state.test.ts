import { afterAll, describe, expect, test } from "vitest";
import { type Caller, refusalOf } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const other = await world.caller();
ownWorldOnly();

let made = 0;
const newState = () => `gAAAA-${++made}-/+=_. \t"quoted" ü \\u00e9 🐘`;
const question = { role: "user", content: "Go on." };
/** The reasoning item of the upstream with this state. */
const itemOf = (state: string) => ({
  type: "reasoning",
  id: "rs_up_1",
  summary: [],
  encrypted_content: state,
});

/** Has an upstream make state for a caller. `form` is the form of the answer. */
async function makeState(who: Caller, { model = "scripted", form = "json" } = {}): Promise<string> {
  const state = newState();
  world.play({ kind: "ok", encrypted: state });
  const body = { model, input: "Hi", include: ["reasoning.encrypted_content"] };
  if (form === "stream") {
    const events = await who.stream("/responses", body);
    expect(events.at(-2)?.json.response.output[0]).toMatchObject(itemOf(state));
  } else {
    const { json } = await who.post("/responses", body);
    expect(json.output[0]).toMatchObject(itemOf(state));
  }
  return state;
}

describe("state that only its maker can read", () => {
  test.for(["json", "stream"])("of a %s answer goes back byte for byte", async (form) => {
    const state = await makeState(caller, { form });
    const seen = world.play();
    const input = [itemOf(state), question];
    const { status } = await caller.post("/responses", { model: "scripted", input });
    expect(status).toBe(200);
    expect(seen[0]?.body.input).toEqual(input);
    expect(seen[0]?.raw.toString()).toContain(JSON.stringify(state));
  });

  test("of another account is refused, before anything is sent or held", async () => {
    const state = await makeState(caller);
    const seen = world.play();
    const asked = await other.post("/responses", {
      model: "scripted",
      input: [question, itemOf(state)],
    });
    expect(refusalOf(asked)).toBe(
      "400 invalid_request_error invalid_value input[1].encrypted_content",
    );
    expect(seen).toHaveLength(0);
    expect(await other.balance()).toMatchObject({ available: 10_000_000, reserved: 0 });
  });

  test("is the account's: another key of it may use it", async () => {
    const state = await makeState(caller);
    const seen = world.play();
    const colleague = await world.withKey(caller, {});
    const input = [itemOf(state), question];
    const { status } = await colleague.post("/responses", { model: "scripted", input });
    expect(status).toBe(200);
    expect(seen).toHaveLength(1);
  });

  test("of a compaction is the account's as well", async () => {
    const state = newState();
    world.play({ kind: "ok", encrypted: state });
    const { json } = await caller.post("/responses/compact", { model: "scripted", input: "Hi" });
    const seen = world.play();
    const body = { model: "scripted", input: json.output };
    const foreign = await other.post("/responses", body);
    expect(refusalOf(foreign)).toBe(
      "400 invalid_request_error invalid_value input[1].encrypted_content",
    );
    const own = await caller.post("/responses", body);
    expect(own.status).toBe(200);
    expect(seen[0]?.body.input).toEqual(json.output);
  });

  test("that both accounts were given is each one's own", async () => {
    const state = newState();
    for (const who of [caller, other]) {
      world.play({ kind: "ok", encrypted: state });
      await who.post("/responses", { model: "scripted", input: "Hi" });
    }
    for (const who of [caller, other]) {
      const body = { model: "scripted", input: [itemOf(state), question] };
      expect((await who.post("/responses", body)).status).toBe(200);
    }
  });
});

describe("state goes to the upstream that made it", () => {
  test("also where that is the fallback, and the first is up again", async () => {
    const state = newState();
    world.play({ kind: "ok", encrypted: state });
    world.upstream.script({ kind: "status", status: 503 });
    const first = await caller.post("/responses", { model: "backed", input: "Hi" });
    expect(first.json.output[0]).toMatchObject(itemOf(state));
    expect(world.backup.requests).toHaveLength(1);
    world.play();
    const input = [itemOf(state), question];
    const next = await caller.post("/responses", { model: "backed", input });
    expect(next.status).toBe(200);
    expect([world.upstream.requests.length, world.backup.requests.length]).toEqual([0, 1]);
    expect(world.backup.requests[0]?.body.input).toEqual(input);
  });

  test("and to no other where that one is down", async () => {
    const state = await makeState(caller, { model: "backed" });
    for (const behaviour of [{ kind: "drop" }, { kind: "status", status: 500 }] as const) {
      world.play();
      world.upstream.script(behaviour);
      for (const stream of [false, true]) {
        const body = { model: "backed", input: [itemOf(state), question], stream };
        const asked = await caller.post("/responses", body);
        expect(refusalOf(asked)).toBe("502 server_error model_request_failed null");
      }
      expect(world.backup.requests).toHaveLength(0);
    }
  });

  test("one that no upstream is known for to the model's first, without a fallback", async () => {
    const input = [itemOf(newState()), question];
    const seen = world.play();
    expect((await caller.post("/responses", { model: "backed", input })).status).toBe(200);
    expect(seen[0]?.body.input).toEqual(input);
    world.upstream.script({ kind: "drop" });
    const asked = await caller.post("/responses", { model: "backed", input });
    expect(refusalOf(asked)).toBe("502 server_error model_request_failed null");
    expect(world.backup.requests).toHaveLength(0);
  });

  test("never to a model that is served elsewhere", async () => {
    const state = await makeState(caller);
    const seen = world.play();
    const body = { model: "peer", input: [itemOf(state), question] };
    const asked = await caller.post("/responses", body);
    expect(refusalOf(asked)).toBe(
      "400 invalid_request_error invalid_value input[0].encrypted_content",
    );
    expect(seen).toHaveLength(0);
  });
});

// This is the last test, because the world's clock does not move back.
test("is forgotten after 30 days, not before", async () => {
  const state = await makeState(caller);
  const body = { model: "scripted", input: [itemOf(state), question] };
  const dayMs = 24 * 3_600_000;
  await world.later(29 * dayMs);
  expect((await other.post("/responses", body)).status).toBe(400);
  await world.later(2 * dayMs);
  expect((await other.post("/responses", body)).status).toBe(200);
});

describe("another spelling of state in base64", () => {
  const spellings = (state: string) => [
    state.replaceAll("+", "-").replaceAll("/", "_"),
    state.replace(/=+$/, ""),
    `${state}=`,
    `${state}\n`,
    `${state.slice(0, 8)}\n${state.slice(8)}`,
    `${state.slice(0, 8)}"!"${state.slice(8)}`,
    `${state}AAAA`,
  ];

  test.for(["std", "url"])("is no other state: %s", async (alphabet) => {
    const std = `${Buffer.from(`state ${++made} ÿþ?>~`.repeat(9)).toString("base64").slice(0, -4)}+/A=`;
    const state = alphabet === "std" ? std : std.replaceAll("+", "-").replaceAll("/", "_");
    world.play({ kind: "ok", encrypted: state });
    await caller.post("/responses", { model: "scripted", input: "Hi" });
    // The last digit has bits that belong to no byte.
    const loose = state.replace(/A=$/, "B=");
    for (const spelling of [state, loose, ...spellings(state)]) {
      const seen = world.play();
      const input = [itemOf(spelling), question];
      const { status } = await other.post("/responses", { model: "scripted", input });
      expect([spelling, status]).toEqual([spelling, 400]);
      expect(seen).toHaveLength(0);
    }
    world.play();
    const own = await caller.post("/responses", {
      ...{ model: "scripted", input: [itemOf(state), question] },
    });
    expect(own.status).toBe(200);
  });
});
