import { once } from "node:events";
import { appendFile, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type ConnectionOptions, connect } from "node:tls";
import type { Dispatcher } from "undici";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { type ManualClock, manualClock } from "#kit/time/clock.ts";
import {
  type Authority,
  type CertificateFolder,
  certificateFolder,
  mountSecret,
  noCertificates,
  type Pair,
} from "../../../test/support/certificates.ts";
import { until } from "../../../test/support/until.ts";
import { createDnsPeers, type DnsPeers } from "./peers-dns.ts";
import {
  clientTlsOptions,
  followTls,
  openTls,
  serverTlsOptions,
  type TlsFiles,
  type TlsMaterial,
  type TlsSource,
} from "./tls.ts";

// Certificates of a test authority, for the name peer.test, which only the injected look-up knows.

const name = "peer.test";
const quiet = { log: createLogger("silent") };
let folder: CertificateFolder;
let ours: Authority;
let theirs: Authority;
let pair: Pair;
const opened: (AsyncDisposable | Disposable)[] = [];

beforeAll(async () => {
  if (noCertificates) return;
  folder = await certificateFolder();
  [ours, theirs] = await Promise.all([folder.authority("ours"), folder.authority("theirs")]);
  pair = await ours.issue(name);
});
afterAll(async () => {
  await folder?.[Symbol.asyncDispose]();
});
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) {
    if (Symbol.asyncDispose in one) await one[Symbol.asyncDispose]();
    else one[Symbol.dispose]();
  }
});

const fixed = (material: TlsMaterial): TlsSource => ({
  current: () => material,
  onChange: () => () => {},
});

/** An HTTP/1.1 server with TLS at 127.0.0.1. It answers the name in the client's certificate. */
async function serve(source: TlsSource, clientAuth = false): Promise<number> {
  const tls = { source, clientAuth };
  const server = createServer(serverTlsOptions(tls), (req, res) => {
    const { subject } = (req.socket as unknown as ReturnType<typeof connect>).getPeerCertificate();
    res.end(`${subject?.CN ?? "nobody"}`);
  });
  followTls(server, tls);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push({
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  });
  return (server.address() as AddressInfo).port;
}

/** Serial number of the certificate that the server shows to a new connection. */
async function shown(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, servername: name, ...options });
  try {
    await once(socket, "secureConnect");
    return socket.getPeerCertificate().serialNumber;
  } finally {
    socket.destroy();
  }
}

function peersAt(port: number, tls?: TlsSource): DnsPeers {
  const pool = createDnsPeers({
    url: `https://${name}:${port}`,
    lookup: async () => ["127.0.0.1"],
    ...quiet,
    ...(tls ? { tls } : {}),
  });
  opened.push(pool);
  return pool;
}

/** The server's answer. Rejects with the error of the connection. */
async function ask(pool: DnsPeers): Promise<string> {
  const peer = (await pool.pick([])) ?? expect.unreachable("no address");
  try {
    const { body } = await (peer.dispatcher as Dispatcher).request({ path: "/", method: "GET" });
    const text = await body.text();
    peer.done("ok");
    return text;
  } catch (error) {
    peer.done("failed");
    throw error;
  }
}

async function watched(files: TlsFiles): Promise<{ source: TlsSource; clock: ManualClock }> {
  const clock = manualClock();
  const source = await openTls(files, { ...quiet, clock });
  opened.push(source);
  return { source, clock };
}

/** Advances the clock so that the files are checked again, until a condition holds. */
const seen = (clock: ManualClock, what: string, isSo: () => boolean) =>
  until(what, async () => {
    await clock.advance(1_000);
    return isSo();
  });

describe.skipIf(noCertificates)(`TLS files${noCertificates ? ` (${noCertificates})` : ""}`, () => {
  test.each<[string, (good: TlsFiles) => Promise<TlsFiles>, string, RegExp]>([
    ["no certificate", async (good) => ({ keyFile: good.keyFile }), "cert", /without its cert/],
    ["no key", async (good) => ({ certFile: good.certFile }), "key", /without its key/],
    [
      "a file that is not there",
      async (good) => ({ ...good, caFile: `${good.caFile}.gone` }),
      "ca",
      /gone cannot be read \(ENOENT\)/,
    ],
    [
      "a certificate that is none",
      async (good) => ({ ...good, certFile: await fileOf("hello") }),
      "cert",
      /holds no PEM certificate/,
    ],
    [
      "a key that is none",
      async (good) => ({ ...good, keyFile: good.certFile }),
      "key",
      /holds no PEM private key/,
    ],
    [
      "the key of another",
      async (good) => ({ ...good, keyFile: await fileOf((await ours.issue(name)).key) }),
      "key",
      /does not belong to the certificate/,
    ],
    [
      "authorities that are none",
      async (good) => ({ ...good, caFile: good.keyFile }),
      "ca",
      /holds no PEM certificate/,
    ],
    [
      "a broken one among the authorities",
      async (good) => ({
        ...good,
        caFile: await fileOf(
          `${ours.ca}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
        ),
      }),
      "ca",
      /holds no PEM certificate/,
    ],
  ])("%s: refused, naming the file", async (_, change, part, message) => {
    const { files } = await mountSecret(folder, { ...pair, ca: ours.ca });
    const error = await openTls(await change(files), quiet).then(
      () => expect.unreachable("it was taken"),
      (error: Error) => error,
    );
    expect(error).toMatchObject({ name: "TlsFileError", part });
    expect(error.message).toMatch(message);
    expect(error.message).not.toMatch(/BEGIN|MII/);
  });

  test("a changed secret is shown to new connections; open ones go on", async () => {
    const secret = await mountSecret(folder, { ...pair, ca: ours.ca });
    const { source, clock } = await watched(secret.files);
    const port = await serve(source);
    const before = await shown(port, { ca: ours.ca });
    const old = connect({ host: "127.0.0.1", port, servername: name, ca: ours.ca });
    opened.push({ [Symbol.dispose]: () => void old.destroy() });
    await once(old, "secureConnect");
    const next = await ours.issue(name);
    await secret.replace({ ...next, ca: ours.ca });
    await seen(clock, "the new pair", () => source.current().cert === next.cert);
    expect(await shown(port, { ca: ours.ca })).not.toBe(before);
    old.write(`GET / HTTP/1.1\r\nhost: ${name}\r\n\r\n`);
    expect(String((await once(old, "data"))[0])).toMatch(/^HTTP\/1\.1 200/);
  });

  test("bad new files leave the last good pair in force, until they are good", async () => {
    const secret = await mountSecret(folder, { ...pair, ca: ours.ca });
    const { source, clock } = await watched(secret.files);
    const port = await serve(source);
    const before = await shown(port, { ca: ours.ca });
    const next = await ours.issue(name);
    for (const bad of [
      { ...next, key: pair.key, ca: ours.ca },
      { cert: "", key: "", ca: ours.ca },
      { ...next, ca: "nothing" },
    ]) {
      await secret.replace(bad);
      for (let i = 0; i < 3; i++) await clock.advance(1_000);
      expect(source.current().cert).toBe(pair.cert);
      expect(await shown(port, { ca: ours.ca })).toBe(before);
    }
    await secret.replace({ ...next, ca: ours.ca });
    await seen(clock, "the new pair", () => source.current().cert === next.cert);
    expect(await shown(port, { ca: ours.ca })).not.toBe(before);
  });

  test("files written in place are seen too", async () => {
    const { files } = await mountSecret(folder, { ...pair, ca: ours.ca });
    const { source, clock } = await watched({ caFile: files.caFile });
    expect(source.current()).toEqual({ ca: ours.ca });
    await appendFile(files.caFile, theirs.ca);
    await seen(clock, "both authorities", () => source.current().ca === ours.ca + theirs.ca);
  });
});

describe.skipIf(noCertificates)("TLS between peers", () => {
  test("the name is what the certificate is checked against, at any address that is dialled", async () => {
    const port = await serve(fixed(pair));
    expect(await ask(peersAt(port, fixed({ ca: ours.ca })))).toBe("nobody");
    const other = await serve(fixed(await ours.issue("other.test", "127.0.0.1")));
    await expect(ask(peersAt(other, fixed({ ca: ours.ca })))).rejects.toMatchObject({
      code: "ERR_TLS_CERT_ALTNAME_INVALID",
    });
  });

  test("a server of another authority is not spoken to, and its address counts as down", async () => {
    const port = await serve(fixed(await theirs.issue(name)));
    for (const tls of [fixed({ ca: ours.ca }), undefined]) {
      const pool = peersAt(port, tls);
      await expect(ask(pool)).rejects.toThrow();
      expect(pool.addresses()).toEqual([]);
    }
  });

  test("with client authentication only a certificate of the authority is heard", async () => {
    const port = await serve(fixed({ ...pair, ca: ours.ca }), true);
    const client = await ours.issue("gateway.test");
    expect(await ask(peersAt(port, fixed({ ...client, ca: ours.ca })))).toBe("gateway.test");
    const stranger = await theirs.issue("gateway.test");
    await expect(ask(peersAt(port, fixed({ ca: ours.ca })))).rejects.toThrow();
    await expect(ask(peersAt(port, fixed({ ...stranger, ca: ours.ca })))).rejects.toThrow();
  });

  test("a change of authority goes through without a gap, in the order trust, certificates, distrust", async () => {
    const secret = await mountSecret(folder, { ...pair, ca: ours.ca });
    const { source, clock } = await watched(secret.files);
    const port = await serve(source, true);
    const pool = peersAt(port, source);
    expect(await ask(pool)).toBe(name);
    const next = await theirs.issue("next.test", name);
    for (const step of [
      { ...pair, ca: ours.ca + theirs.ca },
      { ...next, ca: ours.ca + theirs.ca },
      { ...next, ca: theirs.ca },
    ]) {
      await secret.replace(step);
      const isNow = ({ ca, cert }: TlsMaterial) => ca === step.ca && cert === step.cert;
      await seen(clock, "the step", () => isNow(source.current()));
      // The server answers the name in the certificate that it was shown.
      expect(await ask(pool)).toBe(step.cert === pair.cert ? name : "next.test");
    }
    await expect(ask(peersAt(port, fixed({ ...pair, ca: theirs.ca })))).rejects.toThrow();
    await expect(ask(peersAt(port, fixed({ ...next, ca: ours.ca })))).rejects.toThrow();
  });

  test("a server says at once what it lacks", () => {
    expect(() => serverTlsOptions({ source: fixed({ ca: ours.ca }), clientAuth: false })).toThrow(
      /needs a certificate/,
    );
    expect(() => serverTlsOptions({ source: fixed(pair), clientAuth: true })).toThrow(
      /needs the authorities/,
    );
  });

  test("nothing below TLS 1.2", async () => {
    const port = await serve(fixed(pair));
    const old: ConnectionOptions = { ca: ours.ca, minVersion: "TLSv1", maxVersion: "TLSv1.1" };
    await expect(shown(port, old)).rejects.toThrow();
    expect(clientTlsOptions(pair)).toMatchObject({ minVersion: "TLSv1.2" });
  });
});

let written = 0;
async function fileOf(content: string): Promise<string> {
  const file = `${folder.path}/${++written}.pem`;
  await writeFile(file, content);
  return file;
}
