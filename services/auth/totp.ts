// Makes and checks the second factor of operators who sign in by name: codes of an authenticator, and recovery codes.

import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";

// Codes of an authenticator by RFC 6238, with the parameters that all authenticators know: SHA-1, six digits, 30 seconds.

const stepMs = 30_000;
const digits = 6;
/** Bytes of a secret: those of SHA-1's output, which RFC 4226 recommends. */
const secretBytes = 20;
/** Bytes of a recovery code: 80 bits, so that it cannot be guessed, not even from its hash. */
const recoveryBytes = 10;
const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

/** The form of a secret in base32. */
export const totpSecretPattern = /^[A-Z2-7]{32}$/;

/** A new secret, in base32. */
export function newTotpSecret(): string {
  return base32(randomBytes(secretBytes)).toUpperCase();
}

/** The URI from which an authenticator reads the secret. */
export function totpUri(name: string, secret: string): string {
  const label = `genmesh:${encodeURIComponent(name)}`;
  return `otpauth://totp/${label}?secret=${secret}&issuer=genmesh&algorithm=SHA1&digits=${digits}&period=${stepMs / 1_000}`;
}

/** A new recovery code, as people write it down: "abcd-efgh-ijkl-mnop". */
export function recoveryCodeOf(): string {
  return (base32(randomBytes(recoveryBytes)).match(/.{4}/g) ?? []).join("-");
}

/** The time step of a code, where it is one of the present step, or of up to `within` steps before or after. */
export function stepOfCode(
  secret: string,
  code: string,
  nowMs: number,
  within: number,
): number | undefined {
  const now = Math.floor(nowMs / stepMs);
  const sent = Buffer.from(code.replace(/\s/g, ""));
  let found: number | undefined;
  for (let step = now - within; step <= now + within; step++) {
    const right = Buffer.from(codeOf(secret, step));
    if (sent.length === right.length && timingSafeEqual(sent, right)) found = step;
  }
  return found;
}

/** SHA-256 of a secret that has too many bits to be guessed, hexadecimal. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret);
}

function codeOf(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac("sha1", fromBase32(secret)).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0xf;
  const number = (mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits;
  return String(number).padStart(digits, "0");
}

/** Bytes in base32, whose number is a multiple of five. */
function base32(bytes: Uint8Array): string {
  let bits = "";
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  return bits.replace(/.{5}/g, (five) => alphabet[Number.parseInt(five, 2)] ?? "");
}

function fromBase32(text: string): Buffer {
  let bits = "";
  for (const letter of text.toLowerCase()) {
    bits += alphabet.indexOf(letter).toString(2).padStart(5, "0");
  }
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
