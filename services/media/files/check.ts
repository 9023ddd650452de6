import { ErrorReason, isRefusal, type Reason, RefusalError } from "#kit/errors.ts";
import {
  ImageError,
  type ImageRules,
  type ImageVerifier,
  type VerifiedImage,
} from "#kit/images/index.ts";
import type { StorageContext } from "./context.ts";
import { busyRetryMs, maxImageBytes, maxImagePixels, verifyShare } from "./limits.ts";

/** Which refusals an image at fault gives. */
export interface Blame {
  param: string;
  /** For bytes that are no image as it should be. */
  invalid: Reason;
  /** For more bytes than an image may have. */
  tooLarge: Reason;
}

/** Verifies images, some at a time. */
export interface ImageCheck {
  /**
   * Decodes bytes, or the file of a path, to the last pixel. Refuses as `blame` says, or with SERVICE_UNAVAILABLE where
   * no decoder can be had.
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

/** Makes the check: images of one account take turns with those of others. */
export function createImageCheck(
  verifier: Pick<ImageVerifier, "verify">,
  context: Pick<StorageContext, "share">,
): ImageCheck {
  const share = context.share(verifyShare);
  return {
    async verify(accountId, source, blame, signal) {
      try {
        using _turn = await share.take(accountId, signal);
        return await verifier.verify(source, rules);
      } catch (error) {
        throw refusalOf(error, blame);
      }
    },
  };
}

/** An error of the verifier as a refusal; anything else as it is. */
function refusalOf(error: unknown, { param, invalid, tooLarge }: Blame): unknown {
  if (!(error instanceof ImageError) || isRefusal(error)) return error;
  switch (error.kind) {
    case "too_large":
      return new RefusalError(tooLarge, { param, cause: error });
    case "too_many_pixels":
      return new RefusalError(invalid, {
        param,
        message: "An image has at most 50 megapixels.",
        cause: error,
      });
    case "unsupported_format":
    case "corrupt":
    case "timeout":
      return new RefusalError(invalid, {
        param,
        message: "The bytes are not a whole JPEG, PNG or WebP image.",
        cause: error,
      });
    case "busy":
    case "unavailable":
      return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
        metadata: { retry_after_ms: String(busyRetryMs) },
        cause: error,
      });
  }
}
