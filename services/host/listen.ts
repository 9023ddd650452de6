import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { ConfigError } from "./env.ts";

/** Counts the requests of a server that are not answered yet. */
export interface InFlight {
  /** To be given to the gateway as its `createServer`. */
  createServer(options: ServerOptions, handler: RequestListener): Server;
  /** Resolves at the first moment without a request, or when `signal` aborts. */
  whenIdle(signal: AbortSignal): Promise<void>;
}

/** Makes an {@link InFlight}. */
export function countInFlight(): InFlight {
  let open = 0;
  let waiting: (() => void)[] = [];
  const wake = () => {
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  return {
    createServer: (options, handler) =>
      createServer(options, (request, response) => {
        open++;
        response.once("close", () => {
          open--;
          if (open === 0) wake();
        });
        handler(request, response);
      }),
    whenIdle(signal) {
      if (open === 0 || signal.aborted) return Promise.resolve();
      signal.addEventListener("abort", wake, { once: true });
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** Runs a listen call; a port that cannot be had is said plainly, with the variable that chooses it. */
export async function listening<T>(
  variable: string,
  address: { host: string; port: number },
  listen: () => Promise<T>,
): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const where = `${address.host}:${address.port}`;
    if (code === "EADDRINUSE") {
      throw new ConfigError(
        `${variable} ${where} is in use by another program: stop it, or choose another port`,
      );
    }
    if (code === "EACCES" || code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
      throw new ConfigError(
        `${variable} ${where} cannot be listened on (${code}): choose another address`,
      );
    }
    throw error;
  }
}
