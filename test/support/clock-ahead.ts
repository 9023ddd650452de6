// Preloaded into a process (node --import). Sets its clock ahead of the machine's by a number of milliseconds.
const aheadMs = Number(process.env.TEST_CLOCK_AHEAD_MS ?? 0);
const { now } = Date;
Date.now = () => now() + aheadMs;
