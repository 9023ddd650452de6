import { afterAll, expect, test } from "vitest";
import { startEdge } from "./world.ts";

const seen: string[] = [];
const world = await startEdge({
  text: {
    generate({ conversation }: { conversation: string }) {
      seen.push(conversation);
      return { body: Buffer.from("{}") };
    },
  },
});
afterAll(() => world[Symbol.asyncDispose]());

test.each<[string, Record<string, string>]>([
  ["c", { "session-id": "x", "x-claude-code-session-id": "c" }],
  ["x", { "session-id": "x" }],
  ["x", { "session-id": "x", "x-claude-code-session-id": "" }],
  ["", {}],
])("the conversation %j is named by the header of its client", async (name, headers) => {
  seen.length = 0;
  for (const path of ["/responses", "/chat/completions", "/responses/compact"]) {
    await world.post(`/v1${path}`, "{}", headers);
  }
  expect(seen).toEqual([name, name, name]);
});
