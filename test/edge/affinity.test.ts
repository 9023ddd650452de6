import { expect, test } from "vitest";
import { startEdge } from "./world.ts";

test("equal requests are sent where they find each other, others anywhere", async () => {
  const seen: (string | null)[] = [];
  await using world = await startEdge({
    text: {
      generate(_, context) {
        seen.push(context.requestHeader.get("genmesh-affinity"));
        return { body: Buffer.from("{}") };
      },
    },
  });
  for (const key of ["a", "a", "b"]) {
    await world.post("/v1/responses", "{}", { "idempotency-key": key });
  }
  await world.post("/v1/responses", "{}");
  expect(seen[0]).toMatch(/^[\w-]{43}$/);
  expect(seen[1]).toBe(seen[0]);
  expect(seen[2]).not.toBe(seen[0]);
  expect(seen[3]).toBeNull();
});
