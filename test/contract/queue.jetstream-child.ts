import { once } from "node:events";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { openJetstreamQueue } from "#kit/queue/jetstream.ts";
import { systemClock } from "#kit/time/clock.ts";

// Opens a queue after a line on standard input, and prints all that it receives.
const [, , url = "", name = "", redeliverMs = ""] = process.argv;
process.stdout.write("ready\n");
await once(process.stdin, "data");
const queue = await openJetstreamQueue({
  url,
  name,
  redeliverMs: Number(redeliverMs),
  clock: systemClock,
  log: createLogger("silent"),
  metrics: createMetrics(),
});
const receiver = queue.subscribe("jobs-image");
const never = new AbortController().signal;
process.stdout.write("open\n");
for (;;) {
  const delivery = await receiver.next(never);
  await delivery.ack();
  process.stdout.write(`${delivery.id}\n`);
}
