// Seals secrets that are kept in a store, so that they can be read only by a process that has the installation's own secret.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

/** Bytes of the installation's own secret: a key of AES-256. */
export const sealSecretBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
/** Begins a sealed text, and names the way in which it is sealed. */
const form = "v1.";

/** A text that was sealed. */
export interface Opened {
  text: string;
  /** Was it sealed by a secret that is not the first? */
  isOld: boolean;
}

/** Seals texts, each under a name, and opens them under that same name alone. */
export interface Seal {
  /** The text by the first secret, with AES-256-GCM. */
  seal(name: string, text: string): string;
  /** Undefined where no secret opens it under this name. */
  open(name: string, sealed: string): Opened | undefined;
}

/** Makes a seal. The first secret seals. All of them open, so that a secret can be replaced. */
export function createSeal(secrets: readonly [Uint8Array, ...Uint8Array[]]): Seal {
  return {
    seal(name, text) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", secrets[0], nonce).setAAD(Buffer.from(name));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return form + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64");
    },
    open(name, sealed) {
      if (!sealed.startsWith(form)) return undefined;
      const bytes = Buffer.from(sealed.slice(form.length), "base64");
      for (const secret of secrets) {
        const text = openBy(secret, name, bytes);
        if (text !== undefined) return { text, isOld: secret !== secrets[0] };
      }
      return undefined;
    },
  };
}

function openBy(secret: Uint8Array, name: string, bytes: Buffer): string | undefined {
  try {
    const cipher = createDecipheriv("aes-256-gcm", secret, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    });
    cipher.setAAD(Buffer.from(name));
    cipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    const text = cipher.update(bytes.subarray(nonceBytes + tagBytes));
    return Buffer.concat([text, cipher.final()]).toString();
  } catch {
    return undefined;
  }
}

/** A store has texts that are sealed by a secret which this process lacks. Its message names them. */
export class WrongSealError extends Error {
  override readonly name = "WrongSealError";
}
