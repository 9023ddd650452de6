import { get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { portsFrom } from "../services/host/run-mesh/ports.ts";

/** Where everything listens. */
export const host = "127.0.0.1";
/** Allots ports of this machine that are free. */
export const nextPort = portsFrom(host, 0);

/** Milliseconds between two looks at a program that starts: less than a start's own spread. */
const pollMs = 5;
/** Milliseconds in which a program answers, at most. */
const readyWithinMs = 60_000;

/** Resolves at the first answer 200 from a port. */
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
