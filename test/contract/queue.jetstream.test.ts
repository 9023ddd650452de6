import { setTimeout as delay } from "node:timers/promises";
import { nanos } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import type { JetstreamQueue } from "#kit/queue/jetstream.ts";
import type { JetstreamDelivery } from "#kit/queue/jetstream-receive.ts";
import { until } from "../support/until.ts";
import { describeJetstream } from "./queue.jetstream.world.ts";
import { queueContract } from "./queue.suite.ts";

/** Milliseconds of a delivery. The server's clock cannot be moved, so this is short, but longer than a look that finds nothing. */
const shortMs = 1_500;
/** Milliseconds of a delivery where a test first checks that nothing comes. A slow machine needs less for that. */
const laterMs = 4_000;
const topic = "jobs-image";
const within = (ms = 5_000) => AbortSignal.timeout(ms);

await describeJetstream("the queue in JetStream", (jetstream) => {
  describe("keeps what every queue promises", () => {
    queueContract(async () => {
      const name = jetstream.newName();
      const open = () => jetstream.open(name, { redeliverMs: laterMs });
      return { queues: [await open(), await open()], pass: () => {} };
    });
  });

  test("headers go along", async () => {
    const queue = await jetstream.open(jetstream.newName());
    const headers = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
    await queue.publish(topic, "job_a", { headers });
    await using receiver = queue.subscribe(topic);
    expect((await receiver.next(within())).headers).toEqual(headers);
  });

  test("a receiver that says that it still works keeps the delivery", async () => {
    const queue = await jetstream.open(jetstream.newName(), { redeliverMs: shortMs });
    await queue.publish(topic, "job_a");
    await using receiver = queue.subscribe(topic);
    let delivery = await receiver.next(within());
    await using other = queue.subscribe(topic);
    const again = () => other.next(within(10_000));
    let coming = again();
    // A worker whose pause was longer than its delivery has lost that, so the test tries again.
    while (!(await saysThatItWorks(delivery, 2.5 * shortMs, coming))) {
      delivery = await coming;
      coming = again();
    }
    expect((await coming).attempt).toBe(delivery.attempt + 1);
  });

  test("waits that are given up lose nothing, whenever that happens", async () => {
    const queue = await jetstream.open(jetstream.newName());
    await using receiver = queue.subscribe(topic);
    const got = new Set<string>();
    const take = async (signal: AbortSignal) => {
      const delivery = await receiver.next(signal);
      got.add(delivery.id);
      await delivery.ack();
    };
    for (let i = 0; i < 60; i++) {
      const stop = new AbortController();
      const waiting = take(stop.signal).catch(() => {});
      const sent = queue.publish(topic, `job_${i}`);
      // A little earlier or later each time, around the moment at which the wake-up arrives.
      const until = performance.now() + i / 20;
      while (performance.now() < until) await new Promise(setImmediate);
      stop.abort();
      await Promise.all([waiting, sent]);
    }
    // Far shorter than the time after which a lost delivery would come again by itself.
    const enough = within(5_000);
    while (got.size < 60) await take(enough);
  });

  test("a receiver that waits no longer leaves wake-ups to those that do", async () => {
    const queue = await jetstream.open(jetstream.newName());
    await using idle = queue.subscribe(topic);
    await expect(idle.next(within(200))).rejects.toThrow();
    await using receiver = queue.subscribe(topic);
    // Far shorter than the time after which a lost delivery would come again by itself.
    const enough = within(5_000);
    for (const id of ["job_a", "job_b", "job_c"]) {
      await queue.publish(topic, id);
      const delivery = await receiver.next(enough);
      expect(delivery.id).toBe(id);
      await delivery.ack();
    }
  });

  test("receivers that begin at once, with other settings, all receive", async () => {
    for (let round = 0; round < 5; round++) {
      const name = jetstream.newName();
      const queues = [
        await jetstream.open(name, { redeliverMs: 20_000 }),
        await jetstream.open(name, { redeliverMs: 30_000 }),
      ];
      const waits = queues.map((queue) => queue.subscribe(topic).next(within()));
      for (const [i, queue] of queues.entries()) await queue.publish(topic, `job_${i}`);
      const ids = (await Promise.all(waits)).map(({ id }) => id);
      expect(ids.sort()).toEqual(["job_0", "job_1"]);
    }
  });

  test("settings are those of the last that opened it", async () => {
    const name = jetstream.newName();
    const first = await jetstream.open(name, { redeliverMs: 10_000 });
    await receive(first);
    const { streams, consumers } = await jetstream.manager();
    await streams.update(`${name}-wakes`, { max_msgs: 5 });
    const second = await jetstream.open(name, { redeliverMs: 20_000 });
    await receive(second);
    const { config } = await streams.info(`${name}-wakes`);
    expect(config).toMatchObject({ max_msgs: 300_000, retention: "workqueue", num_replicas: 1 });
    const consumer = await consumers.info(`${name}-wakes`, topic);
    expect(consumer.config).toMatchObject({ ack_wait: nanos(20_000), max_deliver: -1 });
  });

  test("settings that the server cannot give are refused at start", async () => {
    const name = jetstream.newName();
    const { streams } = await jetstream.manager();
    await streams.add({ name: `${name}-wakes`, subjects: [`${name}.wakes.*.*`] });
    await expect(jetstream.open(name)).rejects.toThrow(/refuses the stream/);
    await expect(jetstream.open("not a name")).rejects.toThrow(TypeError);
  });

  test("a stream that is deleted under load is made anew, and all goes on", async () => {
    const name = jetstream.newName();
    const [queue, second] = [await jetstream.open(name), await jetstream.open(name)];
    const { streams } = await jetstream.manager();
    const got = new Set<string>();
    const stop = new AbortController();
    const receivers = [queue, second].map((client) => collect(client, got, stop.signal));
    for (let i = 0; i < 300; i++) {
      if (i === 100 || i === 200) await streams.delete(`${name}-wakes`);
      await queue.publish(topic, `job_${i}`);
    }
    // The wake-ups of a deleted stream are gone. The sweep would publish them again, like this test.
    const missing = () =>
      Array.from({ length: 300 }, (_, i) => `job_${i}`).filter((id) => !got.has(id));
    await until("the last of them", () => got.has("job_299"));
    for (const id of missing()) await queue.publish(topic, id);
    await until("all of them", () => missing().length === 0);
    stop.abort();
    await Promise.all(receivers);
    expect(queue.notReady()).toBeUndefined();
  });

  test("a stream that is deleted while wake-ups wait in it takes new ones", async () => {
    const name = jetstream.newName();
    const queue = await jetstream.open(name);
    for (const id of ["job_a", "job_b"]) await queue.publish(topic, id);
    const { streams } = await jetstream.manager();
    await streams.delete(`${name}-wakes`);
    await using receiver = queue.subscribe(topic);
    const waiting = receiver.next(within());
    await queue.publish(topic, "job_a");
    expect((await waiting).id).toBe("job_a");
  });

  test("a consumer that is deleted is made anew", async () => {
    const name = jetstream.newName();
    const queue = await jetstream.open(name);
    await using receiver = queue.subscribe(topic);
    const waiting = receiver.next(within());
    const { consumers } = await jetstream.manager();
    await until("the receiver to wait", async () => {
      const found = await consumers.info(`${name}-wakes`, topic).catch(() => undefined);
      return found?.num_waiting;
    });
    await consumers.delete(`${name}-wakes`, topic);
    await queue.publish(topic, "job_a");
    expect((await waiting).id).toBe("job_a");
  });
});

async function receive(queue: JetstreamQueue): Promise<void> {
  await using receiver = queue.subscribe(topic);
  await queue.publish(topic, "job_first");
  await (await receiver.next(within())).ack();
}

/**
 * Keeps a delivery for `forMs` by repeated signs of work. Fails where the delivery comes again (`coming`) nevertheless. False where the
 * machine paused so long that it might come.
 */
async function saysThatItWorks(
  delivery: JetstreamDelivery,
  forMs: number,
  coming: Promise<JetstreamDelivery>,
): Promise<boolean> {
  const beganMs = performance.now();
  let isAgain = false;
  void coming.then(() => {
    isAgain = true;
  });
  let saidMs = beganMs;
  while (saidMs - beganMs < forMs) {
    await delivery.working();
    const nowMs = performance.now();
    if (nowMs - saidMs > shortMs / 2) return false;
    expect(isAgain).toBe(false);
    saidMs = nowMs;
    await delay(10);
  }
  return true;
}

/** Receives until it is stopped, like a worker. */
async function collect(queue: JetstreamQueue, got: Set<string>, stop: AbortSignal): Promise<void> {
  await using receiver = queue.subscribe(topic);
  while (!stop.aborted) {
    try {
      const delivery = await receiver.next(stop);
      got.add(delivery.id);
      await delivery.ack();
    } catch {
      await new Promise(setImmediate);
    }
  }
}
