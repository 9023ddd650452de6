import { expect, test } from "vitest";
import { createLargeAnswers } from "./large/index.ts";
import { createCollector } from "./replay.ts";

const chunk = (delta: string, finish: string | null = null) => ({
  frame: Buffer.from(
    `data: {"id":"c","choices":[{"index":0,"delta":${delta},"finish_reason":${JSON.stringify(finish)}}]}\n\n`,
  ),
  text: "",
});

test("a delta named like the prototype of all objects changes no other object", async () => {
  const collector = createCollector("chat", "acct_1", createLargeAnswers());
  collector.add(chunk('{"role":"assistant","content":"Hi"}'));
  collector.add(chunk('{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"bad":1}}}'));
  collector.add(chunk("{}", "stop"));
  const answer = await collector.answer(undefined, undefined);
  try {
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
    expect(({} as { bad?: number }).bad).toBeUndefined();
    expect(JSON.parse(`${answer}`).choices[0].message).toMatchObject({ content: "Hi" });
  } finally {
    Reflect.deleteProperty(Object.prototype, "polluted");
  }
});
