import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { redeliverMs, type Subscription, type WakeQueue } from "#kit/queue/port.ts";

/** Two clients of one empty queue, and control over its time. */
export interface QueueGround {
  queues: [WakeQueue, WakeQueue];
  /** Lets the time of a delivery pass. */
  pass(ms: number): void;
}

/** The rules for every queue of wake-ups. */
export function queueContract(open: () => Promise<QueueGround>): void {
  let ground: QueueGround;
  let queue: WakeQueue;
  let second: WakeQueue;
  const subscriptions: Subscription[] = [];
  beforeEach(async () => {
    ground = await open();
    [queue, second] = ground.queues;
  });
  afterEach(async () => {
    for (const one of subscriptions.splice(0)) await one[Symbol.asyncDispose]();
    for (const one of ground.queues) await one[Symbol.asyncDispose]();
  });
  const subscribe = (topic: string, client = queue) => {
    const subscription = client.subscribe(topic);
    subscriptions.push(subscription);
    return subscription;
  };
  const within = (ms = 5_000) => AbortSignal.timeout(ms);
  const nothing = async (subscription: Subscription) => {
    await expect(subscription.next(within(150))).rejects.toThrow();
  };

  test("what is published is received, by another client too", async () => {
    const receiver = subscribe("jobs-image", second);
    await queue.publish("jobs-image", "job_a");
    const delivery = await receiver.next(within());
    expect(delivery).toMatchObject({ id: "job_a", attempt: 1 });
    await delivery.ack();
    await nothing(receiver);
  });

  test("a receiver that waits is woken", async () => {
    const waiting = subscribe("jobs-image").next(within());
    await second.publish("jobs-image", "job_a");
    expect((await waiting).id).toBe("job_a");
  });

  test("what comes before the receivers waits for them", async () => {
    await queue.publish("jobs-image", "job_a");
    await queue.publish("jobs-image", "job_b");
    const receiver = subscribe("jobs-image", second);
    const ids = [await receiver.next(within()), await receiver.next(within())].map(({ id }) => id);
    expect(ids.sort()).toEqual(["job_a", "job_b"]);
  });

  test("each wake-up goes to one receiver", async () => {
    const one = subscribe("jobs-image").next(within());
    const other = subscribe("jobs-image", second).next(within());
    await queue.publish("jobs-image", "job_a");
    await queue.publish("jobs-image", "job_b");
    const ids = (await Promise.all([one, other])).map(({ id }) => id);
    expect(ids.sort()).toEqual(["job_a", "job_b"]);
  });

  test("topics are apart", async () => {
    const receiver = subscribe("jobs-music");
    await queue.publish("jobs-image", "job_a");
    await nothing(receiver);
  });

  test("the same id waits once", async () => {
    for (let i = 0; i < 3; i++) await queue.publish("jobs-image", "job_a");
    const receiver = subscribe("jobs-image");
    await (await receiver.next(within())).ack();
    await nothing(receiver);
    // After its end it may come again.
    await queue.publish("jobs-image", "job_a");
    expect((await receiver.next(within())).id).toBe("job_a");
  });

  test("a wait that is given up takes nothing", async () => {
    const receiver = subscribe("jobs-image");
    const stop = new AbortController();
    const waiting = receiver.next(stop.signal);
    stop.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await queue.publish("jobs-image", "job_a");
    expect((await receiver.next(within())).id).toBe("job_a");
    await expect(receiver.next(AbortSignal.abort(new Error("too late")))).rejects.toThrow(
      "too late",
    );
  });

  describe("a delivery", () => {
    test("that is not acknowledged comes again, to any receiver", async () => {
      await queue.publish("jobs-image", "job_a");
      await subscribe("jobs-image").next(within());
      const receiver = subscribe("jobs-image", second);
      await nothing(receiver);
      ground.pass(redeliverMs + 1_000);
      expect(await receiver.next(within(15_000))).toMatchObject({ id: "job_a", attempt: 2 });
    });

    test("that is acknowledged does not", async () => {
      await queue.publish("jobs-image", "job_a");
      const receiver = subscribe("jobs-image");
      const delivery = await receiver.next(within());
      await delivery.ack();
      await delivery.ack();
      ground.pass(redeliverMs + 1_000);
      await nothing(receiver);
    });

    test("that is put off comes after that time, and not before", async () => {
      await queue.publish("jobs-image", "job_a");
      const receiver = subscribe("jobs-image");
      await (await receiver.next(within())).retry(5_000);
      await nothing(receiver);
      ground.pass(6_000);
      expect(await receiver.next(within(15_000))).toMatchObject({ id: "job_a", attempt: 2 });
    });
  });

  test("names that not every queue could carry are refused", async () => {
    for (const name of ["", "a b", "a.b", "a>", "x".repeat(65)]) {
      await expect(queue.publish(name, "job_a")).rejects.toThrow(TypeError);
      await expect(queue.publish("jobs-image", name)).rejects.toThrow(TypeError);
      expect(() => queue.subscribe(name)).toThrow(TypeError);
    }
  });

  test("a closed client publishes and receives no more", async () => {
    const receiver = subscribe("jobs-image");
    const ended = expect(receiver.next(within())).rejects.toThrow();
    await queue[Symbol.asyncDispose]();
    await ended;
    await expect(queue.publish("jobs-image", "job_a")).rejects.toThrow();
  });
}
