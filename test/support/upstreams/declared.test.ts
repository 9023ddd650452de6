import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { headersOf } from "../../../services/upstreams/jobs/auth.ts";
import { upstreamAt } from "../../../services/upstreams/media/world.fixture.ts";
import { type DeclaredOptions, type State, startDeclaredService } from "./declared.ts";
import { tokenIssuer } from "./declared-common.ts";
import type { DeclaredName } from "./declared-facts.ts";

/** A double, and requests to it with its key. */
async function open(name: DeclaredName, options: DeclaredOptions = {}) {
  const service = await startDeclaredService(name, options);
  const auth = { jwt: "HS256" as const, issuerEnv: "ISSUER", seconds: 1_800 };
  const secrets = (variable: string) => (variable === "ISSUER" ? tokenIssuer : service.key);
  const upstream = upstreamAt(service.baseUrl, "JOBS");
  const isSigned = name === "kling";
  const form = isSigned ? { auth } : {};
  const headers = (await headersOf(upstream, form, { secrets }, Date.now())) ?? {};
  const ask = async (method: string, path: string, body?: JsonObject) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${service.baseUrl}${path}`, { method, headers, ...sent });
    const text = await answer.text();
    return { status: answer.status, json: text === "" ? {} : JSON.parse(text) };
  };
  return { service, ask, [Symbol.asyncDispose]: service[Symbol.asyncDispose] };
}

const words = { model: "m", duration: 6, content: [{ type: "text", text: "a red boat" }] };

test.each([false, true])(
  "MiniMax deletes by a task's state (second source: %s)",
  async (isOther) => {
    const answers: [State, JsonObject | number, number][] = [
      ["waiting", { action: isOther ? "cancel" : "cancelled" }, 200],
      ["running", 400, 200],
      ["done", { action: "delete" }, 400],
      ["failed", { action: "delete" }, 400],
      ["expired", { action: "delete" }, 400],
      ["cancelled", 400, 200],
    ];
    for (const [state, answer, looked] of answers) {
      await using it = await open("minimax", { isOther });
      it.service.plan({ pace: "held" });
      const { json } = await it.ask("POST", "/v2/video_generation", words);
      const [task] = it.service.tasks;
      if (task) task.state = state;
      const deleted = await it.ask("DELETE", `/v2/video_generation/${json.task_id}`);
      expect([state, deleted.status === 200 ? deleted.json : deleted.status]).toEqual([
        state,
        answer,
      ]);
      const look = await it.ask("GET", `/v2/query/video_generation/${json.task_id}`);
      expect([state, look.status]).toEqual([state, looked]);
    }
  },
);

test("Ark takes 120 tasks that wait, and seconds within bounds", async () => {
  await using it = await open("ark");
  const submit = (more: JsonObject = {}) =>
    it.ask("POST", "/contents/generations/tasks", { ...words, ...more });
  expect((await submit({ duration: 3 })).status).toBe(400);
  it.service.plan(...Array.from({ length: 121 }, () => ({ pace: "held" as const })));
  for (let n = 0; n < 120; n++) expect((await submit()).status).toBe(200);
  expect(await submit()).toMatchObject({ status: 429, json: { error: { code: "QuotaExceeded" } } });
  // Those that run do not count.
  it.service.advance();
  expect((await submit()).status).toBe(200);
});

test.each([false, true])("Kling knows a task by two ids (second source: %s)", async (isOther) => {
  await using it = await open("kling", { isOther });
  const input = { prompt: "a red boat", duration: "5", external_task_id: "ours" };
  const { json } = await it.ask("POST", "/v1/videos/text2video", input);
  for (const id of [json.data.task_id, "ours"]) {
    const look = await it.ask("GET", `/v1/videos/text2video/${id}`);
    expect(look.json.data.task_id).toBe(json.data.task_id);
    expect((await it.ask("GET", `/v1/videos/image2video/${id}`)).status).toBe(404);
  }
  const second = await it.ask("POST", "/v1/videos/text2video", input);
  expect([second.status, it.service.tasks.length]).toEqual(isOther ? [400, 1] : [200, 2]);
});
