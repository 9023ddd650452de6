import { describe, expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { untilAborted, withinTime } from "./abort.ts";

describe("work that has a time", () => {
  const within = (clock = manualClock()) => {
    const late = () => new Error("late");
    return { clock, time: { clock, ms: 1_000, late } };
  };

  test("is told when that is over, and by what", async () => {
    const { clock, time } = within();
    const work = withinTime(time, (signal) => untilAborted(new Promise(() => {}), signal));
    const ended = expect(work).rejects.toThrow("late");
    await clock.advance(1_000);
    await ended;
  });

  test.each(["comes to something", "fails"])("is told nothing any more once it %s", async (how) => {
    const { clock, time } = within();
    let told: AbortSignal | undefined;
    const work = withinTime(time, async (signal) => {
      told = signal;
      if (how === "fails") throw new Error("its own");
      return 7;
    });
    if (how === "fails") await expect(work).rejects.toThrow("its own");
    else expect(await work).toBe(7);
    await clock.advance(1_000);
    expect(told?.aborted).toBe(false);
  });
});
