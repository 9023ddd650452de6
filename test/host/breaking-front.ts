import { once } from "node:events";
import {
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";

/** The treatment of a call. "before": it is not passed on. "after": it is, and its answer is lost. */
export type Break = "before" | "after";

/** Stands in front of a gRPC port and breaks calls like a process that is killed and restarted. */
export interface BreakingFront extends AsyncDisposable {
  /** HOST:PORT */
  address: string;
  /** Breaks the next `times` calls of a method ("CreateAccount"). */
  breaks(method: string, how: Break, times: number): void;
  /** The called methods, in order. */
  calls: string[];
}

/** HTTP/2's INTERNAL_ERROR. A client sees this while a process is starting. */
const internalError = 2;

/** Opens a front before `grpcAddress`. */
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
