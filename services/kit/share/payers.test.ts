import { expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { createPayers } from "./payers.ts";

test("an account pays for a while after money of it was held", async () => {
  const clock = manualClock();
  const payers = createPayers({ clock });
  expect(payers.isPaying("a")).toBe(false);
  payers.paid("a");
  expect(payers.isPaying("a")).toBe(true);
  expect(payers.isPaying("b")).toBe(false);
  await clock.advance(15 * 60_000);
  expect(payers.isPaying("a")).toBe(false);
});
