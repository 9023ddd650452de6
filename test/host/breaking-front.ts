import { once } from "node:events";
import {
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";

/** What becomes of a call: it is not handed on, or it is and its answer is lost. */
export type Break = "before" | "after";

/** Stands before a gRPC port and breaks calls as a process does that is killed and comes back. */
export interface BreakingFront extends AsyncDisposable {
  /** HOST:PORT */
  address: string;
  /** Breaks so many of the next calls of a method ("CreateAccount"). */
  breaks(method: string, how: Break, times: number): void;
  /** Names of the methods that were called, in order. */
  calls: string[];
}

/** HTTP/2's INTERNAL_ERROR: what a client sees of a process that is not up yet. */
const internalError = 2;

/** Opens one before `grpcAddress`. */
export async function openBreakingFront(grpcAddress: string): Promise<BreakingFront> {
  const behind = connect(`http://${grpcAddress}`);
  const wanted = new Map<string, { how: Break; times: number }>();
  const calls: string[] = [];
  const server = createServer().on("stream", (stream, headers) => {
    stream.on("error", () => {});
    const method = headers[":path"]?.split("/").at(-1) ?? "";
    calls.push(method);
    const due = wanted.get(method);
    const how = due && due.times-- > 0 ? due.how : undefined;
    if (how === "before") return void stream.close(internalError);
    const { ":authority": _, ":scheme": __, ...rest } = headers;
    handOn(stream, behind.request(rest), how === "after");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    breaks: (method, how, times) => void wanted.set(method, { how, times }),
    calls,
    async [Symbol.asyncDispose]() {
      behind.destroy();
      server.close();
    },
  };
}

type Answering = ReturnType<ReturnType<typeof connect>["request"]>;

function handOn(stream: ServerHttp2Stream, upstream: Answering, isLost: boolean): void {
  let trailers: IncomingHttpHeaders = {};
  upstream.on("error", () => stream.destroy());
  upstream.on("trailers", (some) => {
    trailers = some;
  });
  stream.pipe(upstream);
  if (isLost) {
    upstream.resume().on("end", () => stream.close(internalError));
    return;
  }
  upstream.on("response", ({ ":status": status, ...headers }) => {
    stream.respond({ ":status": status, ...headers }, { waitForTrailers: true });
    upstream.pipe(stream);
  });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
}
