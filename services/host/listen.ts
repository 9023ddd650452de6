import { once } from "node:events";
import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createNetServer } from "node:net";
import { ConfigError } from "./env.ts";

/** Counts the requests of a server that are not answered yet. */
export interface InFlight {
  /** To be given to the gateway as its `createServer`. `make`: for a server with TLS; default: a plain one. */
  createServer(options: ServerOptions, handler: RequestListener, make?: MakeServer): Server;
  /** Is no request open? */
  isIdle(): boolean;
  /**
   * Resolves at the first moment without a request, or when `signal` aborts. From the call on, every answer is the last
   * one of its connection: its caller shall connect anew, and perhaps to another process.
   */
  whenIdle(signal: AbortSignal): Promise<void>;
}

/** Makes a server that is not listening yet. */
export type MakeServer = (options: ServerOptions, handler: RequestListener) => Server;

/** Makes an {@link InFlight}. */
export function countInFlight(): InFlight {
  let open = 0;
  let draining = false;
  let waiting: (() => void)[] = [];
  const wake = () => {
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  return {
    createServer(options, handler, make = createServer) {
      return make(options, (request, response) => {
        open++;
        if (draining) response.setHeader("connection", "close");
        response.once("close", () => {
          open--;
          if (open === 0) wake();
        });
        handler(request, response);
      });
    },
    isIdle: () => open === 0,
    whenIdle(signal) {
      draining = true;
      if (open === 0 || signal.aborted) return Promise.resolve();
      signal.addEventListener("abort", wake, { once: true });
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** A port that is to be had, and the variables that choose it. */
export interface Address {
  host: string;
  port: number;
  portVariable: string;
  /** Absent where the host is not the operator's to choose. */
  hostVariable?: string;
}

/** Runs a listen call; an address that cannot be had is said plainly, with the variable that chooses it. */
export async function listening<T>(address: Address, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    throw explained(error, address);
  }
}

/** Rejects as {@link listening} does where the address cannot be had, before anything is made. */
export async function checkAddress(address: Address): Promise<void> {
  const probe = createNetServer();
  await listening(address, async () => {
    probe.listen({ host: address.host, port: address.port });
    await once(probe, "listening");
  });
  probe.close();
  await once(probe, "close");
}

function explained(error: unknown, address: Address): unknown {
  const { host, port, portVariable, hostVariable = portVariable } = address;
  const { code = "" } = error as NodeJS.ErrnoException;
  const where = `${hostInUrl(host)}:${port}`;
  if (code === "EADDRINUSE") {
    return new ConfigError(
      `${portVariable} ${port} is in use by another program (at ${where}): stop it, or choose another port`,
    );
  }
  if (code === "EACCES") {
    return new ConfigError(
      `${portVariable} ${port} needs a privilege that this process lacks: choose one above 1023`,
    );
  }
  if (["EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN", "EINVAL"].includes(code)) {
    return new ConfigError(
      `${hostVariable} must be an address of this machine, or a name of one (it is "${host}": ${code})`,
    );
  }
  return error;
}

/** An address as URLs have it. */
export function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
