import { describe, expect, test } from "vitest";
import { createMemoryQueue } from "#kit/queue/memory.ts";
import { maxWaiting } from "#kit/queue/port.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { queueContract } from "./queue.suite.ts";

describe("the queue in memory", () => {
  queueContract(async () => {
    const clock = jumpClock();
    // In one process there is one queue, so both clients are the same.
    const queue = createMemoryQueue({ clock });
    return { queues: [queue, queue], pass: (ms) => clock.jump(ms) };
  });

  test("a full topic forgets its oldest", async () => {
    await using queue = createMemoryQueue({ clock: jumpClock() });
    for (let i = 0; i <= maxWaiting; i++) await queue.publish("jobs-image", `job_${i}`);
    await using receiver = queue.subscribe("jobs-image");
    const delivery = await receiver.next(AbortSignal.timeout(60_000));
    expect(delivery.id).toBe("job_1");
  });
});
