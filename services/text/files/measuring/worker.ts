import { parentPort } from "node:worker_threads";
import { muteThread } from "#kit/threads/thread.ts";
import { measureSound } from "./sound.ts";

/** The entry of a measuring thread: answers each sound with what it measures. What goes wrong ends the thread. */
const port = parentPort;
if (port === null) throw new Error("this file is the entry of a measuring thread");
muteThread();
port.on("message", async (bytes: Uint8Array<ArrayBuffer>) => {
  const found = await measureSound(bytes);
  // A sound goes back as it came: its bytes are not copied.
  port.postMessage(found, found ? [found.bytes.buffer] : []);
});
