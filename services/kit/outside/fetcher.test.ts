import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import net, { type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import tls from "node:tls";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { selfSigned } from "./certificate.fixture.ts";
import { createGuardedFetcher, type FetchOptions } from "./fetcher.ts";

const fetcher = createGuardedFetcher({ allowPrivate: true });

let server: Server;
let handle: RequestListener;
let requests: IncomingMessage[];
let base: string;

beforeEach(async () => {
  requests = [];
  handle = (_request, response) => response.end("body");
  server = createServer((request, response) => {
    requests.push(request);
    handle(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  server.close();
  server.closeAllConnections();
});

function get(path: string, options: Partial<FetchOptions> = {}) {
  return fetcher.fetchBytes(`${base}${path}`, { maxBytes: 100, ...options });
}

function failure(kind: string, detail?: string) {
  return expect.objectContaining(detail === undefined ? { kind } : { kind, detail });
}

it("gives the body and the content type", async () => {
  handle = (_request, response) => {
    response.setHeader("content-type", "Image/PNG; charset=x").end(Buffer.of(1, 2, 3));
  };
  const { bytes, contentType } = await get("/a.png?b=c#d");
  expect([...bytes]).toEqual([1, 2, 3]);
  expect(contentType).toBe("image/png");
  expect(requests[0]?.url).toBe("/a.png?b=c");
});

it("gives no content type where none is sent", async () => {
  expect(await get("/")).toMatchObject({ contentType: undefined });
});

it("sends these headers and no other", async () => {
  await get("/", { accept: "image/png, image/*;q=0.5" });
  expect(requests[0]?.headers).toEqual({
    host: base.slice("http://".length),
    connection: "close",
    accept: "image/png, image/*;q=0.5",
    "accept-encoding": "identity",
    "user-agent": "genmesh",
  });
});

describe("redirects", () => {
  const steps = (count: number): RequestListener => {
    return (request, response) => {
      const step = Number(request.url?.slice(1));
      if (step === count) response.end("there");
      else response.writeHead(302, { location: `/${step + 1}`, "set-cookie": "a=b" }).end("no");
    };
  };

  it("follows three, with no cookie and no referrer", async () => {
    handle = steps(3);
    const { bytes } = await get("/0");
    expect(Buffer.from(bytes).toString()).toBe("there");
    expect(requests.map((request) => request.url)).toEqual(["/0", "/1", "/2", "/3"]);
    for (const { headers } of requests) {
      expect(headers).not.toHaveProperty("cookie");
      expect(headers).not.toHaveProperty("referer");
    }
  });

  it("refuses the fourth without asking for its target", async () => {
    handle = steps(4);
    await expect(get("/0")).rejects.toEqual(failure("bad_status", "REDIRECTS"));
    expect(requests).toHaveLength(4);
  });

  it("takes a redirect without a target for a bad status", async () => {
    handle = (_request, response) => response.writeHead(302).end();
    await expect(get("/")).rejects.toEqual(failure("bad_status", "302"));
  });
});

it.each([201, 204, 206, 300, 304, 400, 401, 404, 429, 500, 503])(
  "takes %i for a bad status",
  async (status) => {
    handle = (_request, response) => response.writeHead(status).end();
    await expect(get("/")).rejects.toEqual(failure("bad_status", String(status)));
  },
);

describe("the cap", () => {
  it("lets exactly maxBytes pass", async () => {
    handle = (_request, response) => response.end(Buffer.alloc(100));
    expect((await get("/")).bytes).toHaveLength(100);
  });

  it("refuses by the announced length before the body comes", async () => {
    handle = (_request, response) => {
      response.writeHead(200, { "content-length": "101" }).flushHeaders();
    };
    await expect(get("/")).rejects.toEqual(failure("too_large"));
  });

  it("cuts a body without a length, and closes the connection", async () => {
    const closed = Promise.withResolvers<void>();
    handle = (_request, response) => {
      response.on("close", () => closed.resolve());
      const more = () => response.write(Buffer.alloc(64), more);
      more();
    };
    await expect(get("/")).rejects.toEqual(failure("too_large"));
    await closed.promise;
  });

  it.each([
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["Deflate", deflateSync],
    ["br", brotliCompressSync],
  ])("holds for what %s decodes to", async (coding, compress) => {
    handle = (request, response) => {
      const size = Number(request.url?.slice(1));
      response.writeHead(200, { "content-encoding": coding }).end(compress(Buffer.alloc(size)));
    };
    expect((await get("/100")).bytes).toEqual(Buffer.alloc(100));
    await expect(get("/101")).rejects.toEqual(failure("too_large"));
    await expect(get("/10000000", { maxBytes: 20_000 })).rejects.toEqual(failure("too_large"));
  });

  it("holds for the wire where the decoded bytes stay few", async () => {
    const empty = gzipSync(Buffer.alloc(0));
    handle = (_request, response) => {
      response.setHeader("content-encoding", "gzip");
      const more = () => response.write(empty, more);
      more();
    };
    await expect(get("/")).rejects.toEqual(failure("too_large"));
  });

  it.each(["zstd", "gzip, gzip", "compress", "unknown"])(
    "refuses the encoding %s",
    async (coding) => {
      handle = (_request, response) => {
        response.writeHead(200, { "content-encoding": coding }).end("abc");
      };
      await expect(get("/")).rejects.toEqual(failure("bad_status", "CONTENT_ENCODING"));
    },
  );

  it("refuses a body that is not what its encoding says", async () => {
    handle = (_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end("abcdefgh");
    };
    await expect(get("/")).rejects.toEqual(failure("bad_status", "Z_DATA_ERROR"));
  });
});

describe("an answer that breaks off", () => {
  it("is unreachable when the length is not reached", async () => {
    handle = (_request, response) => {
      response.writeHead(200, { "content-length": "50" });
      response.write("abc", () => response.destroy());
    };
    await expect(get("/")).rejects.toEqual(failure("unreachable"));
  });

  it("is unreachable when the last chunk is missing", async () => {
    handle = (_request, response) => {
      response.write("abc", () => response.destroy());
    };
    await expect(get("/")).rejects.toEqual(failure("unreachable"));
  });

  it("is unreachable when it is not HTTP, or its headers have no end", async () => {
    const raw = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end(`SSH-2.0-x\r\n${"a".repeat(100_000)}`));
    });
    raw.listen(0, "127.0.0.1");
    await once(raw, "listening");
    const url = `http://127.0.0.1:${(raw.address() as AddressInfo).port}/`;
    await expect(fetcher.fetchBytes(url, { maxBytes: 100 })).rejects.toEqual(
      failure("unreachable"),
    );
    raw.close();
    handle = (_request, response) => response.setHeader("x-long", "a".repeat(20_000)).end();
    await expect(get("/")).rejects.toEqual(failure("unreachable"));
  });
});

it("says unreachable where no server listens", async () => {
  server.close();
  await once(server, "close");
  await expect(get("/")).rejects.toEqual(failure("unreachable", "ECONNREFUSED"));
});

describe("time", () => {
  it("ends a request without an answer, and closes its connection", async () => {
    const closed = Promise.withResolvers<void>();
    handle = (request) => request.socket.on("close", () => closed.resolve());
    await expect(get("/", { timeoutMs: 1_000 })).rejects.toEqual(failure("timeout"));
    await closed.promise;
  });

  it("ends a body that drips", async () => {
    const closed = Promise.withResolvers<void>();
    handle = (_request, response) => {
      const drip = setInterval(() => response.write("a"), 10);
      response.on("close", () => {
        clearInterval(drip);
        closed.resolve();
      });
    };
    await expect(get("/", { timeoutMs: 1_000 })).rejects.toEqual(failure("timeout"));
    await closed.promise;
  });

  it("counts redirects into the same time", async () => {
    handle = (_request, response) => {
      setTimeout(() => response.writeHead(302, { location: "/" }).end(), 40);
    };
    await expect(get("/", { timeoutMs: 100 })).rejects.toEqual(failure("timeout"));
  });

  it("ends a look-up that does not end", async () => {
    const stuck = createGuardedFetcher({
      allowPrivate: false,
      resolve: () => new Promise(() => {}),
    });
    const fetched = stuck.fetchBytes("http://a.example.com/", { maxBytes: 1, timeoutMs: 20 });
    await expect(fetched).rejects.toEqual(failure("timeout"));
  });

  it("ends a connection that is never accepted, and destroys its socket", async () => {
    const socket = new net.Socket();
    const closed = once(socket, "close");
    const silent = createGuardedFetcher({ allowPrivate: true, dial: () => socket });
    const fetched = silent.fetchBytes("http://127.0.0.1/", { maxBytes: 1, timeoutMs: 20 });
    await expect(fetched).rejects.toEqual(failure("timeout"));
    await closed;
  });
});

describe("the caller's signal", () => {
  it("ends the fetch with its reason and closes the connection", async () => {
    const arrived = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    handle = (request, response) => {
      request.socket.on("close", () => closed.resolve());
      response.write("a");
      arrived.resolve();
    };
    const controller = new AbortController();
    const fetched = get("/", { signal: controller.signal });
    await arrived.promise;
    const reason = new Error("left");
    controller.abort(reason);
    await expect(fetched).rejects.toBe(reason);
    await closed.promise;
  });

  it("stops a fetch that has not begun", async () => {
    const reason = new Error("left");
    await expect(get("/", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(requests).toEqual([]);
  });
});

it("tries the next address where one is dead", async () => {
  const port = Number(new URL(base).port);
  const addresses = ["127.0.0.9", "127.0.0.1"].map((address) => ({ address, family: 4 }));
  const named = createGuardedFetcher({ allowPrivate: true, resolve: async () => addresses });
  const { bytes } = await named.fetchBytes(`http://a.example.com:${port}/`, { maxBytes: 100 });
  expect(Buffer.from(bytes).toString()).toBe("body");
  expect(requests[0]?.headers.host).toBe(`a.example.com:${port}`);
});

describe("https", () => {
  const address = "93.184.215.14";
  let secure: Server;
  let names: unknown[];

  beforeEach(async () => {
    const identity = selfSigned(["images.example.com", address]);
    names = [];
    secure = createTlsServer(identity, (request, response) => {
      names.push((request.socket as tls.TLSSocket).servername, request.headers.host);
      response.end("secure");
    }).listen(0, "127.0.0.1");
    tls.setDefaultCACertificates([...tls.getCACertificates("bundled"), identity.cert]);
    await once(secure, "listening");
  });

  afterEach(() => {
    secure.close();
    secure.closeAllConnections();
    tls.setDefaultCACertificates(tls.getCACertificates("bundled"));
  });

  function fetchSecure(host: string) {
    const guarded = createGuardedFetcher({
      allowPrivate: false,
      resolve: async () => [{ address, family: 4 }],
      dial: () => net.connect((secure.address() as AddressInfo).port, "127.0.0.1"),
    });
    return guarded.fetchBytes(`https://${host}/`, { maxBytes: 100 });
  }

  it("sends the name as SNI and Host, and checks the certificate against it", async () => {
    expect(Buffer.from((await fetchSecure("images.example.com")).bytes).toString()).toBe("secure");
    await fetchSecure("images.example.com.:8443");
    expect(names).toEqual([
      ...["images.example.com", "images.example.com"],
      ...["images.example.com", "images.example.com.:8443"],
    ]);
  });

  it("sends no SNI for a literal and checks the certificate against the address", async () => {
    await fetchSecure(address);
    expect(names).toEqual([false, address]);
    await expect(fetchSecure("93.184.215.15")).rejects.toEqual(
      failure("unreachable", "ERR_TLS_CERT_ALTNAME_INVALID"),
    );
  });

  it("refuses a certificate for another name, or of an unknown issuer", async () => {
    await expect(fetchSecure("other.example.com")).rejects.toEqual(
      failure("unreachable", "ERR_TLS_CERT_ALTNAME_INVALID"),
    );
    tls.setDefaultCACertificates(tls.getCACertificates("bundled"));
    await expect(fetchSecure("images.example.com")).rejects.toEqual(
      failure("unreachable", "DEPTH_ZERO_SELF_SIGNED_CERT"),
    );
    expect(names).toEqual([]);
  });
});

describe("putting bytes", () => {
  const put = { bytes: Buffer.from("a picture"), contentType: "image/png" };

  it("sends them with their type, and no key, cookie or name of theirs", async () => {
    const got = Promise.withResolvers<string>();
    handle = async (request, response) => {
      got.resolve(await text(request));
      response.writeHead(201).end("kept");
    };
    await fetcher.putBytes(`${base}/place?signature=1`, put, {});
    expect(await got.promise).toBe("a picture");
    const [request] = requests;
    expect([request?.method, request?.url]).toEqual(["PUT", "/place?signature=1"]);
    expect(request?.headers).toEqual({
      host: base.slice("http://".length),
      connection: "close",
      "content-type": "image/png",
      "content-length": "9",
      "user-agent": "genmesh",
    });
  });

  it("follows no redirect, and throws what is no success", async () => {
    for (const status of [302, 403, 500]) {
      handle = (_request, response) => response.writeHead(status, { location: "/other" }).end();
      await expect(fetcher.putBytes(`${base}/`, put, {})).rejects.toEqual(
        failure("bad_status", String(status)),
      );
    }
    expect(requests).toHaveLength(3);
  });

  it("reaches public addresses only, and ends with its caller", async () => {
    const guarded = createGuardedFetcher({ allowPrivate: false });
    await expect(guarded.putBytes(`${base}/`, put, {})).rejects.toEqual(failure("unsafe"));
    expect(requests).toHaveLength(0);
    handle = () => {};
    const leaving = new AbortController();
    const reason = new Error("the caller left");
    const work = fetcher.putBytes(`${base}/`, put, { signal: leaving.signal });
    leaving.abort(reason);
    await expect(work).rejects.toBe(reason);
  });
});
