import { portsFrom } from "../../services/host/run-mesh/ports.ts";

/**
 * Where this process of a test run looks for ports first: its own thousand, from a place that differs between runs. They are below
 * those that a system gives outgoing connections, of which one would now and then take a port between its choice and its use.
 */
const firstOwnPort =
  20_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % 7) * 1_000 + (process.pid % 500);

/** Gives ports of the loopback that nobody listens on, each once. */
export const freePort: () => Promise<number> = portsFrom("127.0.0.1", firstOwnPort);
