import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { anonymousLinesASecond } from "../../gateway/limits.ts";
import { startEdge } from "./world.ts";

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
