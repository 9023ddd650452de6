import { expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createJsonReader } from "./index.ts";

/** Takes a thread some hundred ms. */
const large = Buffer.from(`{"url":"${"\\n\\ud83d\\ude00".repeat(2 * 1024 * 1024)}"}`);
const medium = Buffer.from(JSON.stringify({ a: "word ".repeat(40 * 1024) }));
const signal = new AbortController().signal;

test("a body of 200 KiB does not wait behind the largest of two accounts", async () => {
  await using workshop = createWorkshop();
  const reader = createJsonReader(workshop);
  const read = (accountId: string, bytes: Buffer) =>
    reader.read(bytes, { fingerprint: {} }, { accountId, signal });
  let over = 0;
  const hostile = ["a", "b"].flatMap((accountId) =>
    Array.from({ length: 10 }, async () => {
      await read(accountId, large);
      over++;
    }),
  );
  await hostile[0];
  // Its thread is started once.
  await read("c", medium);
  const before = over;
  for (let at = 0; at < 5; at++) await read("c", medium);
  // Behind large bodies, each of the five would wait for one.
  expect(over - before).toBeLessThan(3);
  await Promise.all(hostile);
});
