import { parentPort } from "node:worker_threads";
import type { JsonObject } from "#kit/json.ts";
import { muteThread } from "#kit/thread.ts";
import { type Memory, remember, type Thought, think } from "./thought.ts";

/** The entry of a thinking thread: answers each request with a thought. What goes wrong ends the thread. */

/** What it is asked. */
export interface Question {
  kind: "answer" | "compaction";
  /** In the Responses format. */
  body: JsonObject;
}

/** What it answers. */
export type Reply = Thought | Memory;

const port = parentPort;
if (port === null) throw new Error("this file is the entry of a thinking thread");
muteThread();
port.on("message", ({ kind, body }: Question) => {
  const reply: Reply = kind === "answer" ? think(body) : remember(body);
  port.postMessage(reply);
});
