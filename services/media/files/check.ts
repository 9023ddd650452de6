// Verifies images of callers before they are stored, and turns the verifier's errors into refusals of the API.

import { ErrorReason, isRefusal, type Reason, RefusalError } from "#kit/base/errors.ts";
import {
  ImageError,
  type ImageRules,
  type ImageVerifier,
  type VerifiedImage,
} from "#kit/images/index.ts";
import { tooManyAtOnce } from "#kit/share/fair-share.ts";
import { busyRetryMs, maxImageBytes, maxImagePixels } from "./limits.ts";

/** The refusals for an image at fault. */
export interface Blame {
  param: string;
  /** For bytes that are no valid image. */
  invalid: Reason;
  /** For more bytes than an image may have. */
  tooLarge: Reason;
}

/** Verifies images before they become files or references of a job. An account has only its share of the decoders. */
export interface ImageCheck {
  /**
   * Decodes bytes, or the file of a path, to the last pixel. Refuses with the reasons in `blame`. Refuses with RATE_LIMIT_EXCEEDED
   * where too many images of the account wait, or with SERVICE_UNAVAILABLE where no decoder comes free.
   */
  verify(
    accountId: string,
    source: Uint8Array | string,
    blame: Blame,
    signal: AbortSignal,
  ): Promise<VerifiedImage>;
}

const rules: ImageRules = {
  accept: ["jpeg", "png", "webp"],
  maxBytes: maxImageBytes,
  maxPixels: maxImagePixels,
};

/** Makes the check. */
export function createImageCheck(verifier: Pick<ImageVerifier, "verify">): ImageCheck {
  return {
    async verify(accountId, source, blame, signal) {
      try {
        return await verifier.verify(source, rules, { accountId, signal });
      } catch (error) {
        throw refusalOf(error, blame);
      }
    },
  };
}

/** An error of the verifier as a refusal. Any other error unchanged. */
function refusalOf(error: unknown, { param, invalid, tooLarge }: Blame): unknown {
  if (!(error instanceof ImageError) || isRefusal(error)) return error;
  switch (error.kind) {
    case "too_large":
      return new RefusalError(tooLarge, { param, cause: error });
    case "too_many_pixels":
      return new RefusalError(invalid, {
        param,
        message: "An image may have at most 50 megapixels.",
        cause: error,
      });
    case "unsupported_format":
    case "corrupt":
    case "timeout":
      return new RefusalError(invalid, {
        param,
        message: "The file must be a whole JPEG, PNG or WebP image.",
        cause: error,
      });
    case "busy":
      return tooManyAtOnce();
    case "unavailable":
      return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
        metadata: { retry_after_ms: String(busyRetryMs) },
        cause: error,
      });
  }
}
