// Finds free ports for the processes of a mesh on this machine.

import { once } from "node:events";
import { createServer } from "node:net";

/** Ports that are tried before the search fails. */
const maxTries = 1_000;

/**
 * Allots free ports of `host`, from `first` upwards, each once. 0: any that the system gives. `given`: ports that were allotted
 * already, shared by several searches. Before the port is used, another process may take it.
 */
export function portsFrom(
  host: string,
  first: number,
  given: Set<number> = new Set(),
): () => Promise<number> {
  let next = first;
  return async () => {
    for (let tries = 0; tries < maxTries; tries++) {
      const port = await tryPort(host, first === 0 ? 0 : next++);
      if (port === undefined || given.has(port)) continue;
      given.add(port);
      return port;
    }
    throw new Error(`no port is free at ${host} from ${first} on`);
  };
}

/** The port, where it is free. */
async function tryPort(host: string, port: number): Promise<number | undefined> {
  const probe = createServer();
  try {
    probe.listen({ host, port });
    await once(probe, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return undefined;
    throw error;
  }
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" && address ? address.port : undefined;
}
