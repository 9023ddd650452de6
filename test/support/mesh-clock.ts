// Preloaded into a process (node --import): its clock jumps to where a file says, in milliseconds ahead of the machine's.
import { readFileSync } from "node:fs";
import { systemClock } from "#kit/clock.ts";
import { jumpClock } from "./jump-clock.ts";

/** Milliseconds between two looks at the file. */
const lookMs = 20;

const file = process.env.TEST_CLOCK_FILE ?? "";
const jumping = jumpClock({ ...systemClock });
Object.assign(systemClock, { now: jumping.now, steady: jumping.steady, sleep: jumping.sleep });
let aheadMs = 0;
const look = () => {
  const wanted = Number(readFileSync(file, "utf8"));
  if (wanted > aheadMs) jumping.jump(wanted - aheadMs);
  aheadMs = Math.max(aheadMs, wanted);
};
look();
setInterval(look, lookMs).unref();
