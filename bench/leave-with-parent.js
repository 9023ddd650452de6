import { isMainThread } from "node:worker_threads";

// Loaded before a program that the bench starts: its parent holds the other end of its standard input, so that
// ends when the bench is gone, however it went. JavaScript, because the peer too must not pay for types being stripped.

/** Milliseconds that the program has to end in by itself. */
const endTimeoutMs = 5_000;

function leave() {
  process.kill(process.pid, "SIGTERM");
  setTimeout(() => process.exit(1), endTimeoutMs).unref();
}

if (isMainThread) {
  process.stdin.on("close", leave).on("error", leave).resume();
  process.stdin.unref();
}
