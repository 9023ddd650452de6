import { createHash } from "node:crypto";
import { once } from "node:events";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { openS3Blobs } from "#kit/store/blobs/s3.ts";
import { BlobExistsError } from "#kit/store/blobs.ts";
import { systemClock } from "#kit/time/clock.ts";

const [, , task = "", url = "", argument = ""] = process.argv;
const log = createLogger("silent");
const blobs = await openS3Blobs({ url, clock: systemClock, ids: randomIds, log });
const say = (line: string) => process.stdout.write(`${line}\n`);

/** Writes 20 keys, all at once, and prints those that it created. */
async function race(): Promise<void> {
  const content = Buffer.alloc(300_000, Number(argument));
  const won: number[] = [];
  const write = async (key: number) => {
    try {
      await blobs.put(`race/${key}`, repeated(content, 1));
      won.push(key);
    } catch (error) {
      if (!(error instanceof BlobExistsError)) throw error;
    }
  };
  await Promise.all(Array.from({ length: 20 }, (_, key) => write(key)));
  say(JSON.stringify(won));
}

/** Writes and reads a number of MiB. Prints whether they are the same, and how much memory that took. */
async function large(): Promise<void> {
  const piece = Buffer.alloc(1 << 20, "genmesh");
  await blobs.put("a/warm-up", repeated(piece, 4));
  await blobs.delete("a/warm-up");
  const baseBytes = process.memoryUsage.rss();
  let peakBytes = baseBytes;
  const watch = setInterval(() => {
    peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
  }, 20);
  async function* source() {
    yield* repeated(piece, Number(argument));
    say("sending");
  }
  const stored = await blobs.put("a/large", source());
  const hash = createHash("sha256");
  for await (const chunk of await blobs.openRead("a/large")) hash.update(chunk as Buffer);
  clearInterval(watch);
  const same = hash.digest("hex") === stored.sha256;
  say(JSON.stringify({ same, grownMiB: (peakBytes - baseBytes) / 2 ** 20 }));
}

async function* repeated(piece: Buffer, times: number): AsyncIterable<Uint8Array> {
  for (let i = 0; i < times; i++) yield piece;
}

say("ready");
await once(process.stdin, "data");
await (task === "race" ? race() : large());
process.exit(0);
