// Judges the certificates with which the catalog has files signed, and makes the signer of them and their key.

import { constants, createPrivateKey, type KeyObject, sign, X509Certificate } from "node:crypto";

/** Signs manifests. */
export interface Signer {
  /** Its number in COSE. */
  algorithm: number;
  /** In DER: the signer's own first, then those that vouch for it. */
  certificates: readonly Uint8Array[];
  signatureBytes: number;
  sign(bytes: Uint8Array): Promise<Buffer>;
}

/** Certificates of a chain: the signer's, two between, and one more. */
export const maxCertificates = 4;
/** Bytes of a chain in DER. A manifest then fits into one segment of a JPEG, which has 64 KiB. */
export const maxChainBytes = 32 * 1024;
/** Bits of an RSA key. C2PA asks for the least, and more than the most take 10 ms for a signature. */
const rsaBits = { least: 2048, most: 4096 };

/** Purposes for which a certificate that signs manifests must be issued, one of them: e-mail, documents, C2PA's own. */
const purposes = ["1.3.6.1.5.5.7.3.4", "1.3.6.1.5.5.7.3.36", "1.3.6.1.4.1.62558.2.1"];

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates in a text of PEM. Undefined: it has none, or one that cannot be read. */
export function certificatesIn(text: string): X509Certificate[] | undefined {
  try {
    const found = text.match(pem) ?? [];
    const certificates = found.map((one) => new X509Certificate(one));
    return certificates.length > 0 ? certificates : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The reason why manifests cannot be signed by a chain of certificates in PEM at a time. Undefined: they can. `nowMs`: milliseconds since
 * the epoch. Default: whether it is valid at a time is not judged.
 */
export function chainFault(text: string, nowMs?: number): string | undefined {
  // Operators and all services read the catalog.
  if (text.includes("PRIVATE KEY"))
    return "holds a private key, which belongs into keyEnv or keyFile";
  const chain = certificatesIn(text);
  const [own, ...others] = chain ?? [];
  if (!own) return "has no certificate in PEM that can be read";
  const bytes = [own, ...others].reduce((sum, { raw }) => sum + raw.length, 0);
  if (others.length >= maxCertificates) return `has more than ${maxCertificates} certificates`;
  if (bytes > maxChainBytes) return `has more than ${maxChainBytes} bytes of certificates`;
  if (own.ca) return "begins with an authority's certificate: the signer's own comes first";
  if (own.issuer === own.subject) return "is signed by itself, which no reader accepts";
  if (!own.keyUsage?.some((one) => purposes.includes(one))) {
    return "is not issued for e-mail protection, document signing or C2PA (extendedKeyUsage)";
  }
  if (!algorithmOf(own.publicKey)) {
    return "has a key that C2PA does not allow: it takes P-256, P-384, P-521, Ed25519 and RSA of 2048 to 4096 bits";
  }
  for (const [index, one] of others.entries()) {
    const issued = [own, ...others][index];
    if (!issued?.checkIssued(one)) return "is not in order: each must be issued by the next";
  }
  if (nowMs === undefined) return undefined;
  for (const { validFromDate, validToDate } of [own, ...others]) {
    if (validFromDate.getTime() > nowMs) return `is valid from ${dayOf(validFromDate)} on`;
    if (validToDate.getTime() < nowMs) return `was valid until ${dayOf(validToDate)}`;
  }
  return undefined;
}

function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/** The key does not belong to the certificate, or cannot be read. The message never has anything of the key. */
export class SignerKeyError extends Error {
  override readonly name = "SignerKeyError";
}

/** Makes a signer of a chain in PEM that {@link chainFault} accepts, and its key in PEM. Throws a {@link SignerKeyError}. */
export function createSigner(chain: string, keyText: string): Signer {
  const certificates = certificatesIn(chain) ?? [];
  const [own] = certificates;
  const key = keyIn(keyText);
  if (!own?.checkPrivateKey(key)) {
    throw new SignerKeyError("the key does not belong to the certificate");
  }
  const algorithm = algorithmOf(own.publicKey);
  if (!algorithm) throw new SignerKeyError("C2PA does not allow such a key");
  const { hash, ...more } = algorithm;
  const how = key.asymmetricKeyType === "rsa" ? { key, ...pss } : ({ key, dsaEncoding } as const);
  return {
    ...more,
    certificates: certificates.map(({ raw }) => raw),
    // Where there is a callback, a thread signs: a large RSA key takes some ms.
    sign: (bytes) => {
      const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
      sign(hash, bytes, how, (error, made) => (error ? reject(error) : resolve(made)));
      return promise;
    },
  };
}

const dsaEncoding = "ieee-p1363";
const pss = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
};

function keyIn(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new SignerKeyError("the key is none in PEM, or has a password");
  }
}

interface Algorithm {
  algorithm: number;
  hash: string | null;
  signatureBytes: number;
}

const curves: Readonly<Record<string, Algorithm>> = {
  prime256v1: { algorithm: -7, hash: "sha256", signatureBytes: 64 },
  secp384r1: { algorithm: -35, hash: "sha384", signatureBytes: 96 },
  secp521r1: { algorithm: -36, hash: "sha512", signatureBytes: 132 },
};

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject) {
  const { namedCurve = "", modulusLength: bits = 0 } = asymmetricKeyDetails ?? {};
  if (asymmetricKeyType === "ec") return curves[namedCurve];
  if (asymmetricKeyType === "ed25519") {
    return { algorithm: -8, hash: null, signatureBytes: 64 };
  }
  const isRsa = asymmetricKeyType === "rsa" && bits >= rsaBits.least && bits <= rsaBits.most;
  return isRsa ? { algorithm: -37, hash: "sha256", signatureBytes: bits / 8 } : undefined;
}
