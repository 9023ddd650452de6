import { expect, test } from "vitest";
import { startEdge } from "./world.ts";

test.each([
  ["a compaction", "/v1/responses/compact", { model: "chat-1", input: "hi" }],
  ["a list of embeddings", "/v1/embeddings", { model: "embedding-1", input: "hi" }],
])("%s is no stream, with any body and however long it takes", async (_what, path, body) => {
  const called = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  await using world = await startEdge({
    text: {
      async *streamGenerate() {
        called.resolve();
        await done.promise;
        yield { part: { case: "complete", value: Buffer.from('{"output":[]}') } };
      },
    },
  });
  const asked = world.post(path, { ...body, stream: true });
  await called.promise;
  // Longer than the time after which a stream's headers are sent.
  await world.clock.advance(40_000);
  done.resolve();
  const answer = await asked;
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
  expect(await answer.text()).toBe('{"output":[]}');
});
