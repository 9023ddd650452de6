import { expect, test } from "vitest";
import { startEdge } from "./world.ts";

const header = "x-genmesh-ignored-parameters";
const ignoredParameters = ["echo", "a%20b"];
const whole = { part: { case: "complete" as const, value: Buffer.from("{}") } };
const events = { part: { case: "events" as const, value: Buffer.from("data: [DONE]\n\n") } };

test("an answer names what was ignored: in JSON, in events and in JSON of the streaming call", async () => {
  await using world = await startEdge({
    text: {
      generate: () => ({ body: Buffer.from("{}"), ignoredParameters }),
      async *streamGenerate({ body }) {
        const isStream = Buffer.from(body).includes("true");
        yield { ...(isStream ? events : whole), ignoredParameters };
      },
    },
  });
  for (const body of ["{}", '{"stream": true}', '{"stream": false}']) {
    const answer = await world.post("/v1/responses", body);
    expect(answer.status).toBe(200);
    expect(answer.headers.get(header)).toBe("echo, a%20b");
  }
});

test("a text service of an older release names nothing", async () => {
  await using world = await startEdge({
    text: {
      generate: () => ({ body: Buffer.from("{}") }),
      async *streamGenerate() {
        yield events;
      },
    },
  });
  for (const body of ["{}", '{"stream": true}']) {
    const answer = await world.post("/v1/responses", body);
    expect(answer.status).toBe(200);
    expect(answer.headers.get(header)).toBeNull();
  }
});
