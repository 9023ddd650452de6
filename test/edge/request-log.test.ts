import { setImmediate } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { anonymousLinesASecond } from "../../gateway/limits.ts";
import { type EdgeParts, type EdgeWorld, startEdge } from "./world.ts";

test("a 503 is logged with its reason, and with what lies behind it by codes alone", async () => {
  const dead = Object.assign(new Error("words of the caller"), { code: "ECONNREFUSED" });
  await using world = await startEdge({
    text: {
      // biome-ignore lint/correctness/useYield: it refuses before it has anything to say.
      async *streamGenerate() {
        const cause = new ConnectError("words of the caller", Code.Unavailable, {}, [], dead);
        refuse(ErrorReason.SERVICE_UNAVAILABLE, { cause });
      },
    },
  });
  const answer = await world.post("/v1/responses", { model: "chat-1", input: "hi", stream: true });
  expect(answer.status).toBe(503);
  await answer.text();
  const facts = {
    requestId: answer.headers.get("x-request-id"),
    cause: "unavailable < ECONNREFUSED",
  };
  await expect
    .poll(() => world.log)
    .toEqual(
      expect.arrayContaining([
        expect.objectContaining({ msg: "service unavailable", rpc: "StreamGenerate", ...facts }),
        expect.objectContaining({ msg: "request", reason: "service_unavailable", ...facts }),
      ]),
    );
  expect(JSON.stringify(world.log)).not.toContain("words of the caller");
});

test.each<[string, string, EdgeParts, () => Promise<unknown>]>([
  [
    "a large answer",
    "/v1/embeddings",
    {
      text: {
        async *streamGenerate() {
          yield { part: { case: "complete", value: Buffer.from('{"a":') }, wholeBytes: 100n };
          await broken();
        },
      },
    },
    () => world.post("/v1/embeddings", { model: "embedding-1", input: "hi" }),
  ],
  [
    "a file that is made while it is sent",
    "/v1/billing/entries",
    {
      billing: {
        listLines: async ({ after }) => (after === "" ? { nextPageToken: "more" } : broken()),
      },
    },
    () => world.ask("/v1/billing/entries?format=csv"),
  ],
])(
  "%s that breaks is logged with why, and not as one whose caller left",
  async (_, route, parts, ask) => {
    world = await startEdge(parts);
    await using _world = world;
    const answer = (await ask()) as Response;
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    const line = { msg: "request", route, status: 503, reason: "service_unavailable" };
    await expect.poll(() => world.log).toContainEqual(expect.objectContaining(line));
    expect(await world.metrics.text()).toMatch(
      new RegExp(
        `duration_seconds_count\\{method="(?:GET|POST)",route="${route}",status="503"\\} 1`,
      ),
    );
  },
);

let world: EdgeWorld;

/** The error of a call whose service goes away, after its first output has reached the caller. */
async function broken(): Promise<never> {
  await setImmediate();
  return refuse(ErrorReason.SERVICE_UNAVAILABLE);
}

test("requests without a valid key have so many lines a second, and one that counts the rest", async () => {
  await using world = await startEdge();
  const lines = (msg: string) => world.log.filter((line) => line.msg === msg);
  const anonymous = { headers: { authorization: "Bearer gm_nobody" } };
  const asked = 50;
  for (let at = 0; at < asked; at++) await (await world.ask("/v1/models", anonymous)).text();
  await (await world.ask("/v1/models")).text();
  await expect.poll(() => lines("request").at(-1)?.status).toBe(200);
  expect(lines("request").filter(({ status }) => status === 401)).toHaveLength(
    anonymousLinesASecond,
  );
  await world.clock.advance(1_000);
  await expect
    .poll(() => lines("requests without a valid key left out of the log"))
    .toMatchObject([{ leftOut: asked - anonymousLinesASecond }]);
  await (await world.ask("/v1/models", anonymous)).text();
  await expect.poll(() => lines("request").at(-1)?.status).toBe(401);
});
