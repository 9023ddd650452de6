import { get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { portsFrom } from "../services/host/run-mesh/ports.ts";

/** The address of all programs. */
export const host = "127.0.0.1";
/** Finds free ports of this machine. */
export const nextPort = portsFrom(host, 0);

/** Milliseconds between two looks at a program that starts. It is less than the spread of a start. */
const pollMs = 5;
/** Milliseconds in which a program must answer. */
const readyWithinMs = 60_000;

/** Resolves at the first answer of 200 from a port. */
export async function untilReady(port: number, path: string): Promise<void> {
  const endsAt = performance.now() + readyWithinMs;
  while (!(await answers(port, path))) {
    if (performance.now() > endsAt) throw new Error(`nothing is ready at port ${port}`);
    await delay(pollMs);
  }
}

function answers(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    get({ host, port, path, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    }).on("error", () => resolve(false));
  });
}
