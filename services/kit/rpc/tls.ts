// Keeps the certificates of a process up to date with their files, for its servers and for its connections to peers.

import type { Server, TlsOptions } from "node:tls";
import type { Logger } from "#kit/base/logger.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import {
  checkTlsMaterial,
  readTlsFiles,
  type TlsFiles,
  type TlsMaterial,
  tlsEndsAt,
} from "./tls-material.ts";

export { TlsFileError, type TlsFiles, type TlsMaterial } from "./tls-material.ts";

/** Certificates that may change while the process runs. */
export interface TlsSource {
  /** The last good material. */
  current(): TlsMaterial;
  /** Calls `listener` at each change. Answers a function that ends this. */
  onChange(listener: (material: TlsMaterial) => void): () => void;
}

/** A {@link TlsSource} over files. */
export interface TlsFileSource extends TlsSource, Disposable {}

/** TLS options of the servers of a process. */
export interface ServerTls {
  source: TlsSource;
  /** True: mTLS, so a client without a certificate of the trusted authorities is refused. */
  clientAuth: boolean;
}

/** Milliseconds between two checks of the files. Their content is read, because a link swapped by Kubernetes hardly gives events. */
const pollMs = 1_000;

/**
 * Reads the files and checks them again every second. Rejects with TlsFileError where they cannot serve now. After later faults, such
 * as a pair that is half written, the last good ones stay in force. Such a fault is logged once.
 */
export async function openTls(
  files: TlsFiles,
  { log, clock = systemClock }: { log: Logger; clock?: Clock },
): Promise<TlsFileSource> {
  let material = await readTlsFiles(files);
  checkTlsMaterial(material, files);
  let lastFault = "";
  const listeners = new Set<(material: TlsMaterial) => void>();
  const stop = new AbortController();

  async function look(): Promise<void> {
    try {
      const found = await readTlsFiles(files);
      if (!isSame(found, material)) {
        checkTlsMaterial(found, files);
        material = found;
        log.info({ endsAt: tlsEndsAt(found) }, "TLS certificates changed");
        for (const listener of listeners) listener(found);
      }
      lastFault = "";
    } catch (error) {
      const { message } = error as Error;
      if (message !== lastFault) log.error({ err: error }, "TLS files: the last good ones stay");
      lastFault = message;
    }
  }
  async function run(): Promise<void> {
    for (;;) {
      await clock.sleep(pollMs, stop.signal);
      await look();
    }
  }
  run().catch(() => {});
  return {
    current: () => material,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [Symbol.dispose]: () => stop.abort(),
  };
}

/** A client's TLS options: a part of the options of `tls.connect`. */
export interface ClientTlsOptions extends TlsMaterial {
  minVersion: typeof minVersion;
}

/** For `tls.connect` and libraries that use it. Trusts the given authorities alone, or the system's where none is given. */
export function clientTlsOptions({ cert, key, ca }: TlsMaterial): ClientTlsOptions {
  return {
    minVersion,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  };
}

/** For `https.createServer` and `http2.createSecureServer`. Throws where there is no certificate, or no authority for mTLS. */
export function serverTlsOptions({ source, clientAuth }: ServerTls): TlsOptions {
  const { cert, key, ca } = source.current();
  if (cert === undefined || key === undefined) throw new Error("a TLS server needs a certificate");
  if (!clientAuth) return { minVersion, cert, key };
  if (ca === undefined) throw new Error("client authentication needs the authorities to trust");
  return { minVersion, cert, key, ca, requestCert: true, rejectUnauthorized: true };
}

/** Gives `server` the new certificates as they come, until it is closed. They apply to connections made from then on. */
export function followTls(server: Server, tls: ServerTls): void {
  const end = tls.source.onChange(() => server.setSecureContext(serverTlsOptions(tls)));
  server.once("close", end);
}

const minVersion = "TLSv1.2";

function isSame(one: TlsMaterial, other: TlsMaterial): boolean {
  return one.cert === other.cert && one.key === other.key && one.ca === other.ca;
}
