import { parentPort } from "node:worker_threads";
import { muteThread } from "#kit/threads/thread.ts";
import type { MeasuringJob, MeasuringReply } from "./meter.ts";
import { measureSound } from "./sound.ts";

/** The entry of a measuring thread: answers each sound with what it measures. What goes wrong ends the thread. */
const port = parentPort;
if (port === null) throw new Error("this file is the entry of a measuring thread");
muteThread();
port.on("message", async ({ what, bytes }: MeasuringJob) => {
  const found = await measured(what, bytes);
  // A sound goes back as it is to go upstream: its bytes are not copied.
  const own = typeof found === "object" && "bytes" in found ? [found.bytes.buffer] : [];
  port.postMessage(found, own);
});

async function measured(
  what: MeasuringJob["what"],
  bytes: Uint8Array<ArrayBuffer>,
): Promise<MeasuringReply[MeasuringJob["what"]]> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  switch (what) {
    case "speech":
      return measureSound(buffer);
    case "sound": {
      const { takeSound } = await import("../sound/length.ts");
      return takeSound(bytes).catch(() => undefined);
    }
  }
}
