import { expect, test } from "vitest";
import { longestTurn } from "../../../test/support/longest-turn.ts";
import { slowness } from "../../../test/support/reference-machine.ts";
import { LargeParts } from "./large-parts.ts";
import { objectOfStream } from "./whole-stream.ts";

const { signal } = new AbortController();
const parts = new LargeParts({
  ...{ isChat: true, isGrouped: false, accountId: "acct_1", signal },
  lift: () => Promise.reject(new TypeError("nothing of these is large")),
});
const chat = { id: "chatcmpl-1", modelId: "chat-1", nowS: () => 1, withUsage: false, stops: [] };

test("a long stream where an object was asked for is read in turns, whatever is in it", async () => {
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const idle = Buffer.alloc(24 * 1024 * 1024, ": waiting\n\n");
  const body = Buffer.concat([
    Buffer.from(chunk({ role: "assistant", content: "he" }, null)),
    idle,
    Buffer.from(`\n\n${chunk({ content: "llo" }, null)}${chunk({}, "stop")}data: [DONE]\n\n`),
  ]);
  const facts = { chat, response: undefined as never, message: undefined as never };
  let text = "";
  const longest = await longestTurn(async () => {
    ({ text } = await objectOfStream(body, { isChat: true, facts, parts }));
  });
  expect(text).toBe("hello");
  expect(longest).toBeLessThan(50 * slowness());
});
