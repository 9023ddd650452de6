import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import net from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatAddress } from "./address.ts";
import type { Dial } from "./dial.ts";
import { OutsideError } from "./errors.ts";
import { createGuardedFetcher, type GuardedFetcher } from "./fetcher.ts";
import { hostileUrls, poisonedAnswers } from "./forms.fixture.ts";
import type { Resolve } from "./resolve.ts";

const publicV4 = "93.184.215.14";
const maxBytes = 1000;

let victim: Server;
let front: Server;
let frontAnswer: { status: number; headers: Record<string, string> };
let connections: number;
let dialled: string[];

/** Connections to one public address end at the front server, all others at the victim. */
const dial: Dial = (target) => {
  const addresses = target.addresses.map(formatAddress);
  dialled.push(...addresses);
  return net.connect(portOf(addresses[0] === publicV4 ? front : victim), "127.0.0.1");
};

const answering =
  (...answers: (readonly string[])[]): Resolve =>
  async () => {
    const addresses = answers.length > 1 ? answers.shift() : answers[0];
    return (addresses ?? []).map((address) => ({ address, family: net.isIPv6(address) ? 6 : 4 }));
  };

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function kindOf(fetcher: GuardedFetcher, url: string): Promise<string> {
  try {
    await fetcher.fetchBytes(url, { maxBytes });
    return "fetched";
  } catch (error) {
    return error instanceof OutsideError ? error.kind : String(error);
  }
}

beforeEach(async () => {
  connections = 0;
  dialled = [];
  frontAnswer = { status: 200, headers: {} };
  victim = createServer((_request, response) => response.end("secret"));
  victim.on("connection", () => connections++);
  // All interfaces, and both families where there are two.
  victim.listen(0, "::").once("error", () => victim.listen(0, "0.0.0.0"));
  front = createServer((_request, response) => {
    response.writeHead(frontAnswer.status, frontAnswer.headers).end("public");
  }).listen(0, "127.0.0.1");
  await Promise.all([once(victim, "listening"), once(front, "listening")]);
});

afterEach(async () => {
  for (const server of [victim, front]) {
    server.close();
    server.closeAllConnections();
  }
});

it("proves with private addresses allowed that the listener is within reach", async () => {
  const fetcher = createGuardedFetcher({ allowPrivate: true });
  const hosts = ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "１２７.０.０.１", "localhost"];
  const v6 = victim.address() !== null && (victim.address() as AddressInfo).family === "IPv6";
  if (v6) hosts.push("[::1]", "[::ffff:127.0.0.1]");
  for (const host of hosts) {
    const url = `http://${host}:${portOf(victim)}/`;
    expect([host, await kindOf(fetcher, url)]).toEqual([host, "fetched"]);
  }
  expect(connections).toBe(hosts.length);
});

describe("without private addresses", () => {
  it("refuses every hostile form before anything is dialled or looked up", async () => {
    const lookUps: string[] = [];
    const resolve: Resolve = async (host) => {
      lookUps.push(host);
      return [{ address: "127.0.0.1", family: 4 }];
    };
    const fetcher = createGuardedFetcher({ allowPrivate: false, resolve, dial });
    const urls = hostileUrls(portOf(victim));
    expect(new Set(urls).size).toBe(urls.length);
    expect(urls.length).toBeGreaterThanOrEqual(200);
    const passed: string[] = [];
    for (const url of urls) {
      const kind = await kindOf(fetcher, url);
      if (kind !== "unsafe" && kind !== "invalid_url") passed.push(`${kind} ${url}`);
    }
    expect(passed).toEqual([]);
    expect({ dialled, connections }).toEqual({ dialled: [], connections: 0 });
    // To a URL parser, Devanagari digits are letters of a name. The name's private answer is refused.
    expect(lookUps).toEqual([new URL("http://१२७.०.०.१/").hostname]);
  });

  it("refuses every hostile form as the target of a redirect", async () => {
    const fetcher = createGuardedFetcher({
      allowPrivate: false,
      resolve: answering([publicV4]),
      dial,
    });
    const isHeaderText = /^[\t\u0020-\u007e]+$/;
    // A location that is relative to the public host stays there, like "http:host".
    const isAbsolute = /^\s*(?:(?!http:\/?[^/\\])[a-z-]+:|[/\\]{2})/i;
    const urls = hostileUrls(portOf(victim)).filter((url) => isHeaderText.test(url));
    const absolute = urls.filter((url) => isAbsolute.test(url));
    expect(absolute.length).toBeGreaterThanOrEqual(200);
    const passed: string[] = [];
    for (const status of [301, 302, 303, 307, 308]) {
      // Each status with a fifth of the table is enough: one code path serves them all.
      for (const location of absolute.filter((_, index) => index % 5 === status % 5)) {
        frontAnswer = { status, headers: { location } };
        const kind = await kindOf(fetcher, "http://images.example.com/");
        if (kind !== "unsafe") passed.push(`${kind} ${location}`);
      }
    }
    expect(passed).toEqual([]);
    expect(new Set(dialled)).toEqual(new Set([publicV4]));
    expect(connections).toBe(0);
  });

  it.each(poisonedAnswers.map((answers) => ({ answers })))(
    "refuses a name with $answers",
    async ({ answers }) => {
      const fetcher = createGuardedFetcher({
        allowPrivate: false,
        resolve: answering(answers),
        dial,
      });
      const url = `http://images.example.com:${portOf(victim)}/`;
      expect(await kindOf(fetcher, url)).toBe("unsafe");
      expect({ dialled, connections }).toEqual({ dialled: [], connections: 0 });
    },
  );

  it("dials what it checked although the name's answer changes at once", async () => {
    let lookUps = 0;
    const resolve: Resolve = async () => {
      lookUps++;
      return [{ address: lookUps === 1 ? publicV4 : "127.0.0.1", family: 4 }];
    };
    const fetcher = createGuardedFetcher({ allowPrivate: false, resolve, dial });
    const url = `http://images.example.com:${portOf(victim)}/`;
    const { bytes } = await fetcher.fetchBytes(url, { maxBytes });
    expect(Buffer.from(bytes).toString()).toBe("public");
    expect({ lookUps, dialled, connections }).toEqual({
      lookUps: 1,
      dialled: [publicV4],
      connections: 0,
    });
    expect(await kindOf(fetcher, url)).toBe("unsafe");
    expect(connections).toBe(0);
  });

  it("checks the name again on a redirect to itself", async () => {
    const resolve = answering([publicV4], ["127.0.0.1"]);
    const fetcher = createGuardedFetcher({ allowPrivate: false, resolve, dial });
    frontAnswer = { status: 302, headers: { location: `http://a.example.com:${portOf(victim)}/` } };
    expect(await kindOf(fetcher, "http://a.example.com/")).toBe("unsafe");
    expect({ dialled, connections }).toEqual({ dialled: [publicV4], connections: 0 });
  });

  it("refuses ports that are no web ports, also behind a redirect", async () => {
    const fetcher = createGuardedFetcher({
      allowPrivate: false,
      resolve: answering([publicV4]),
      dial,
    });
    for (const port of [22, 25, 3306, 6379, 27017]) {
      expect(await kindOf(fetcher, `http://images.example.com:${port}/`)).toBe("unsafe");
    }
    expect(dialled).toEqual([]);
    frontAnswer = { status: 302, headers: { location: "http://images.example.com:25/" } };
    expect(await kindOf(fetcher, "http://images.example.com/")).toBe("unsafe");
    expect(dialled).toEqual([publicV4]);
  });

  it("opens no connection when a deaf resolver answers after the end", async () => {
    const late = Promise.withResolvers<readonly { address: string; family: number }[]>();
    const fetcher = createGuardedFetcher({
      allowPrivate: false,
      resolve: () => late.promise,
      dial,
    });
    const gone = AbortSignal.abort(new Error("gone"));
    const controller = new AbortController();
    const fetched = fetcher.fetchBytes("http://images.example.com/", {
      maxBytes,
      signal: controller.signal,
    });
    controller.abort(gone.reason);
    await expect(fetched).rejects.toBe(gone.reason);
    late.resolve([{ address: publicV4, family: 4 }]);
    await new Promise((resume) => setImmediate(resume));
    expect(dialled).toEqual([]);
  });

  it("never names the host in an error", async () => {
    const resolve: Resolve = async (host) => {
      throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: "ENOTFOUND" });
    };
    const fetcher = createGuardedFetcher({ allowPrivate: false, resolve, dial });
    const error = await fetcher
      .fetchBytes("http://private-name.example.com/", { maxBytes })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ kind: "unreachable", detail: "ENOTFOUND" });
    expect(JSON.stringify([error.message, error.stack, error.cause])).not.toContain("private-name");
  });
});
