// Reads the setting that says where NATS is, and with which credentials it is reached.

/** Addresses and credentials of NATS servers. */
export interface NatsTarget {
  /** HOST:PORT of one server, or of several in a cluster. */
  servers: string[];
  /** TLS, from the first byte that the protocol allows. */
  secure: boolean;
  auth: { user: string; pass: string } | { token: string } | undefined;
}

const accepts =
  "must be nats://[USER:PASSWORD@|TOKEN@]HOST:PORT[,HOST:PORT…], or tls:, percent-encoded";
const serverPattern =
  /^([A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/;
const defaultPort = 4222;

/**
 * Reads `nats://[USER:PASSWORD@|TOKEN@]HOST:PORT[,HOST:PORT…]` or `tls:`. The driver drops credentials in a URL, so they are parsed
 * here. Throws a TypeError that names the accepted forms and the fault, and repeats nothing of the URL.
 */
export function parseNatsUrl(text: string): NatsTarget {
  const parts = /^(nats|tls):\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/?$/.exec(text);
  if (!parts) return wrong("it has another form");
  const [, scheme, auth, hosts = ""] = parts;
  const servers = hosts.split(",").map((server) => {
    const [, host, port = `${defaultPort}`] = serverPattern.exec(server) ?? [];
    if (host === undefined) return wrong("a server is not HOST:PORT");
    if (Number(port) < 1 || Number(port) > 65_535) wrong("a port is not from 1 to 65535");
    return `${host}:${port}`;
  });
  return { servers, secure: scheme === "tls", auth: auth === undefined ? undefined : authOf(auth) };
}

function authOf(text: string): NatsTarget["auth"] {
  const [first = "", second, ...more] = text.split(":").map(decoded);
  if (more.length > 0) wrong("USER:PASSWORD has more than one colon");
  if (first === "" || second === "") wrong("USER, PASSWORD or TOKEN is empty");
  return second === undefined ? { token: first } : { user: first, pass: second };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return wrong("USER, PASSWORD or TOKEN is not percent-encoded");
  }
}

function wrong(fault: string): never {
  throw new TypeError(`${accepts}: ${fault}`);
}
