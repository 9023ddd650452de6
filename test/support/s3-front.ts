import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { parseS3Url } from "#kit/store/blobs/s3-url.ts";

/** The refusal of a write. */
export interface WriteRefusal {
  status: number;
  code: string;
}

/** A server in front of an S3 store, which can refuse to write. */
export interface S3Front extends AsyncDisposable {
  /** The address for clients, in place of the store's. */
  url: string;
  /** Undefined lets everything reach the store. */
  refusal: WriteRefusal | undefined;
  /** Writes that were refused so far. */
  refused: number;
}

/** Opens one in front of the store of a URL. */
export async function openS3Front(storeUrl: string): Promise<S3Front> {
  const { host, port } = parseS3Url(storeUrl);
  const server = createServer((asked, answer) => {
    if (front.refusal && isWrite(asked)) {
      front.refused++;
      const { status, code } = front.refusal;
      asked.resume();
      answer.writeHead(status, { "content-type": "application/xml" });
      answer.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`);
      return;
    }
    // The head stays unchanged, because the signature covers it, including the name of the host.
    const { method, url: path, headers } = asked;
    const passed = request({ host, port, method, path, headers }, (came) => {
      answer.writeHead(came.statusCode ?? 502, came.headers);
      pipeline(came, answer, () => {});
    });
    passed.on("error", () => answer.destroy());
    pipeline(asked, passed, () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(storeUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const front: S3Front = {
    url: url.href,
    refusal: undefined,
    refused: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return front;
}

/** A write of an object or a bucket. A store without room still deletes and reads. */
function isWrite({ method }: IncomingMessage): boolean {
  return method === "PUT" || method === "POST";
}
