// Reads the secrets that a catalog names by a file: keys of upstreams, and a signer's key.

import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** The largest file with a key, in bytes. Servers take no longer header. */
const maxKeyFileBytes = 8 * 1024;

/** Begins the name of a stored key. No variable has such a name, and no path. */
export const storedKeyPrefix = "stored:";

/** A key as a header carries it. */
export const wholeKey = /^[\x21-\x7e]+$/;
const wholePem = /^-----BEGIN [A-Z ]+-----\r?\n[\x20-\x7e\r\n]+-----END [A-Z ]+-----$/;

/**
 * The key in a file, without the white space around it. Undefined where the file cannot be read or holds no key. The file is read at
 * each call, so a replaced file counts at once. That also holds for the links of a mounted Secret, which Kubernetes swaps.
 */
export function readKeyFile(path: string): Promise<string | undefined> {
  return readLike(path, wholeKey);
}

/** The same for a key in PEM, which has several lines. */
export function readPemFile(path: string): Promise<string | undefined> {
  return readLike(path, wholePem);
}

async function readLike(path: string, form: RegExp): Promise<string | undefined> {
  try {
    // Non-blocking, because opening a pipe would otherwise wait for its writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const room = Buffer.alloc(maxKeyFileBytes + 1);
    const { bytesRead } = await file.read(room, 0, room.length, 0);
    if (bytesRead > maxKeyFileBytes) return undefined;
    const key = room.toString("latin1", 0, bytesRead).trim();
    return form.test(key) ? key : undefined;
  } catch {
    return undefined;
  }
}
