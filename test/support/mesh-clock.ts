// Preloaded into a process (node --import). Its clock jumps to the time in a file, in milliseconds ahead of the machine's. It writes its
// present time into a file beside that one, named after the process.
import { readFileSync, writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { systemClock } from "#kit/time/clock.ts";
import { jumpClock } from "./jump-clock.ts";

/** Milliseconds between two looks at the file. */
const lookMs = 20;

const file = process.env.TEST_CLOCK_FILE ?? "";
const jumping = jumpClock({ ...systemClock });
Object.assign(systemClock, { now: jumping.now, steady: jumping.steady, sleep: jumping.sleep });
let aheadMs = 0;
const look = () => {
  const wanted = Number(readFileSync(file, "utf8"));
  if (wanted <= aheadMs) return;
  jumping.jump(wanted - aheadMs);
  aheadMs = wanted;
  tell();
};
const tell = () => {
  if (isMainThread) writeFileSync(`${file}.${process.pid}`, `${aheadMs}`);
};
tell();
look();
setInterval(look, lookMs).unref();
