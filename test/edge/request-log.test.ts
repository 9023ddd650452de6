import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/errors.ts";
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
