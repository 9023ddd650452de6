import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { openJetstreamQueue } from "#kit/queue/jetstream.ts";
import { openS3Blobs } from "#kit/store/blobs/s3.ts";
import { openMongo } from "#kit/store/mongo/connect.ts";
import { systemClock } from "#kit/time/clock.ts";

// Uses one store and prints "used", or its error. A process decides at its start which certificates it trusts.
const [, , kind, url = "", name = ""] = process.argv;
const common = {
  clock: systemClock,
  ids: randomIds,
  log: createLogger("silent"),
  metrics: createMetrics(),
};

async function use(): Promise<void> {
  if (kind === "s3") {
    await using blobs = await openS3Blobs({ url, ...common });
    await blobs.check();
  } else if (kind === "mongodb") {
    await using mongo = openMongo({ url, name, ...common });
    await mongo.ping();
  } else {
    await using queue = await openJetstreamQueue({ url, name, ...common });
    await queue.publish("jobs-image", "job_one");
  }
}

const outcome = await use().then(
  () => "used",
  () => "refused",
);
process.stdout.write(`${outcome}\n`, () => process.exit(0));
