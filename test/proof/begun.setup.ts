import { appendFileSync } from "node:fs";
import { beforeEach } from "vitest";
import { eventsVariable, type RunEvent } from "./events.ts";

const events = process.env[eventsVariable];

// At once, and by the process of the test itself: one that computes without an end tells its reporter nothing any more.
if (events !== undefined) {
  beforeEach(({ task }) => {
    const begun: RunEvent = { type: "begun", file: task.file.name, name: task.fullTestName };
    appendFileSync(events, `${JSON.stringify(begun)}\n`);
  });
}
