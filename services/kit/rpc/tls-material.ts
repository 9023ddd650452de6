// Reads certificates and keys from PEM files, and checks that they fit together. `tls.ts` watches the files.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";

/** PEM files. Certificate and key come together. */
export interface TlsFiles {
  /** The own certificate, followed by those between it and its authority. */
  certFile?: string | undefined;
  /** The certificate's private key, not encrypted. */
  keyFile?: string | undefined;
  /** The authorities that are trusted for servers and, with client authentication, for clients. */
  caFile?: string | undefined;
}

/** The content of the files. */
export interface TlsMaterial {
  cert?: string;
  key?: string;
  ca?: string;
}

/** A file cannot be read, or its content cannot be used. The text has the file's name and nothing of its content. */
export class TlsFileError extends Error {
  override readonly name = "TlsFileError";
  /** The file that is at fault. */
  readonly part: keyof TlsMaterial;

  constructor(part: keyof TlsMaterial, message: string, cause?: unknown) {
    super(message, { cause });
    this.part = part;
  }
}

/** Reads the given files. Rejects with TlsFileError. {@link checkTlsMaterial} checks whether they fit together. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsMaterial> {
  const [cert, key, ca] = await Promise.all([
    read("cert", files.certFile),
    read("key", files.keyFile),
    read("ca", files.caFile),
  ]);
  return { ...cert, ...key, ...ca };
}

/**
 * Throws TlsFileError where the material cannot serve: it is no PEM, the key is of another certificate, or one of the two is missing.
 */
export function checkTlsMaterial({ cert, key, ca }: TlsMaterial, files: TlsFiles): void {
  if (ca !== undefined) {
    const blocks = ca.match(certificatePattern) ?? [];
    if (blocks.length === 0) fault("ca", files.caFile, "holds no PEM certificate");
    for (const block of blocks) certificateOf(block, "ca", files.caFile);
  }
  if (cert === undefined && key === undefined) return;
  if (cert === undefined) fault("cert", files.keyFile, "is a key without its certificate");
  if (key === undefined) fault("key", files.certFile, "is a certificate without its key");
  const own = certificateOf(cert, "cert", files.certFile);
  if (!own.checkPrivateKey(privateKeyOf(key, files.keyFile))) {
    fault("key", files.keyFile, "does not belong to the certificate");
  }
  try {
    createSecureContext({ cert, key, ...(ca === undefined ? {} : { ca }) });
  } catch (error) {
    fault("cert", files.certFile, "cannot be used with its key", error);
  }
}

/** ISO time at which the own certificate ends. Undefined where there is none. */
export function tlsEndsAt({ cert }: TlsMaterial): string | undefined {
  return cert === undefined ? undefined : new X509Certificate(cert).validToDate.toISOString();
}

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

async function read(part: keyof TlsMaterial, file: string | undefined): Promise<TlsMaterial> {
  if (file === undefined) return {};
  const pem = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) =>
    fault(part, file, `cannot be read (${error.code})`, error),
  );
  return { [part]: pem };
}

function certificateOf(pem: string, part: keyof TlsMaterial, file: string | undefined) {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    return fault(part, file, "holds no PEM certificate", error);
  }
}

function privateKeyOf(pem: string, file: string | undefined) {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    return fault("key", file, "holds no PEM private key without a passphrase", error);
  }
}

function fault(
  part: keyof TlsMaterial,
  file: string | undefined,
  what: string,
  cause?: unknown,
): never {
  throw new TlsFileError(part, `${file} ${what}`, cause);
}
