import { appendFileSync } from "node:fs";
import { beforeEach } from "vitest";
import { eventsVariable, type RunEvent } from "./events.ts";

const events = process.env[eventsVariable];

// At once, and in the test's own process, because an endless computation could not report to the main process.
if (events !== undefined) {
  beforeEach(({ task }) => {
    const begun: RunEvent = { type: "begun", file: task.file.name, name: task.fullTestName };
    appendFileSync(events, `${JSON.stringify(begun)}\n`);
  });
}
