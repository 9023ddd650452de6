// Preloaded into a process (node --import): its clock is ahead of the machine's by so many milliseconds.
const aheadMs = Number(process.env.TEST_CLOCK_AHEAD_MS ?? 0);
const { now } = Date;
Date.now = () => now() + aheadMs;
