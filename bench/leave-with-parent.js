import { isMainThread } from "node:worker_threads";

// Loaded before a program that the bench starts. The parent holds the other end of its standard input, so that input ends when the bench
// has ended in any way. This is JavaScript, because the peer too must not pay for stripped types.

/** Milliseconds for the program to end by itself. */
const endTimeoutMs = 5_000;

function leave() {
  process.kill(process.pid, "SIGTERM");
  setTimeout(() => process.exit(1), endTimeoutMs).unref();
}

if (isMainThread) {
  process.stdin.on("close", leave).on("error", leave).resume();
  process.stdin.unref();
}
