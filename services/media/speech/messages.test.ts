import { expect, test } from "vitest";
import { toParts } from "./messages.ts";
import type { Heard, Spoken } from "./service.ts";

test("a caller that leaves behind a part ends its listening", async () => {
  let isOver = false;
  async function* speaking(): AsyncGenerator<Heard, Spoken> {
    try {
      const facts = { format: "mp3", amount: 1n, replayed: false, asEvents: false } as const;
      for (;;) yield { piece: Buffer.from("first"), ...facts };
    } finally {
      isOver = true;
    }
  }
  for await (const { part } of toParts(speaking())) if (part?.case === "sound") break;
  expect(isOver).toBe(true);
});
