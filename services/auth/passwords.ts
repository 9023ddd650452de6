// Hashes and checks operators' passwords, few at once, so that guessing cannot use up memory or threads. Keys have random
// secrets, and need none of this.

import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { createFairShare, inTurn } from "#kit/share/fair-share.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { PasswordHash } from "./operator.ts";
import { hashWaitMs, maxHashesAtOnce, maxHashesWaiting, scryptCosts } from "./operator-limits.ts";

/** A caller that waits for a hash. Callers with the same `client` wait in one queue. */
export interface HashCaller {
  client: string;
  signal: StopSignal;
}

/**
 * Hashes passwords by scrypt, in the threads of Node. Few at once, because each takes 128 MiB. Both methods refuse with
 * RATE_LIMIT_EXCEEDED where a client has too many waiting, and with SERVICE_UNAVAILABLE after waiting for seconds.
 */
export interface Passwords {
  hash(password: string, caller: HashCaller): Promise<PasswordHash>;
  /** Is it the password? Undefined in place of a hash is never right, and takes the same time. */
  matches(kept: PasswordHash | undefined, password: string, caller: HashCaller): Promise<boolean>;
}

const saltBytes = 16;
const hashBytes = 32;
const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);

/** The parameters of scrypt, which say how much a hash costs. */
export type PasswordCosts = Omit<PasswordHash, "salt" | "hash">;

/** `costs` are those of new hashes. */
export function createPasswords({
  clock,
  costs = scryptCosts,
}: {
  clock: Clock;
  costs?: PasswordCosts | undefined;
}): Passwords {
  const each = { places: 1, waiting: maxHashesWaiting };
  const full = () =>
    new RefusalError(ErrorReason.RATE_LIMIT_EXCEEDED, {
      message: "Too many sign-ins are under way at once. Try again in a moment.",
      metadata: { retry_after_ms: "1000" },
    });
  const share = createFairShare(
    { places: maxHashesAtOnce, each, waitMs: hashWaitMs },
    { clock, full },
  );
  const run = (password: string, { client, signal }: HashCaller, of: Omit<PasswordHash, "hash">) =>
    inTurn(share, { accountId: client, signal }, () => {
      const { cost, blockSize, parallelization } = of;
      // Node wants more room than the 128 bytes times cost and block size that scrypt fills.
      const options = { cost, blockSize, parallelization, maxmem: 256 * cost * blockSize };
      return derive(password.normalize("NFC"), Buffer.from(of.salt, "base64"), hashBytes, options);
    });
  const newSalt = () => randomBytes(saltBytes).toString("base64");
  const none: PasswordHash = { ...costs, salt: newSalt(), hash: "" };
  return {
    async hash(password, caller) {
      const of = { ...costs, salt: newSalt() };
      return { ...of, hash: (await run(password, caller, of)).toString("base64") };
    },
    async matches(kept, password, caller) {
      const derived = await run(password, caller, kept ?? none);
      const right = Buffer.from((kept ?? none).hash, "base64");
      return right.length === derived.length && timingSafeEqual(right, derived);
    },
  };
}
