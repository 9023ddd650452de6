import { ErrorReason, refuse } from "#kit/errors.ts";
import { parseDataUri } from "#kit/images/index.ts";
import { type GuardedFetcher, OutsideError } from "#kit/outside/index.ts";
import { maxImageBytes } from "../files/limits.ts";

/**
 * The bytes that a reference's URL stands for: a base64 image data URI, or a public address that is fetched. Refuses with
 * INVALID_INPUT_REFERENCE what is neither, UNSAFE_REFERENCE_URL what leads to an address that is not public, and
 * INVALID_REFERENCE_IMAGE what gives no image of up to 20 MiB. Rejects with the signal's reason.
 */
export async function takeBytes(
  url: string,
  param: string,
  fetcher: Pick<GuardedFetcher, "fetchBytes">,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (isDataUri(url)) return decode(url, param);
  try {
    const accept = "image/jpeg, image/png, image/webp";
    return (await fetcher.fetchBytes(url, { maxBytes: maxImageBytes, accept, signal })).bytes;
  } catch (error) {
    if (!(error instanceof OutsideError)) throw error;
    throw refusalOf(error, param);
  }
}

/** Refuses with INVALID_INPUT_REFERENCE what no reference may say, before any work is done for the others. */
export function checkReferenceUrl(url: string, param: string): void {
  if (isDataUri(url) || /^https?:\/\//i.test(url)) return;
  refuse(ErrorReason.INVALID_INPUT_REFERENCE, {
    param,
    message: "An image_url is a public http or https URL, or a base64 image data URI.",
  });
}

function isDataUri(url: string): boolean {
  return /^data:/i.test(url);
}

async function decode(uri: string, param: string): Promise<Uint8Array> {
  // Four digits are three bytes; the head of a data URI has fewer than 100 characters.
  if (uri.length > (maxImageBytes / 3) * 4 + 100) tooLarge(param);
  const read = await parseDataUri(uri);
  const bytes =
    read?.bytes ??
    refuse(ErrorReason.INVALID_INPUT_REFERENCE, {
      param,
      message: "The data URI is not of the form data:image/…;base64,….",
    });
  return bytes.length > maxImageBytes ? tooLarge(param) : bytes;
}

function tooLarge(param: string): never {
  refuse(ErrorReason.INVALID_REFERENCE_IMAGE, { param, message: "An image has at most 20 MiB." });
}

/** Always throws; what the host itself said stays out of it. */
function refusalOf(error: OutsideError, param: string): never {
  switch (error.kind) {
    case "invalid_url":
      return refuse(ErrorReason.INVALID_INPUT_REFERENCE, {
        param,
        message: "An image_url is an absolute http or https URL without user name and password.",
        cause: error,
      });
    case "unsafe":
      return refuse(ErrorReason.UNSAFE_REFERENCE_URL, { param, cause: error });
    case "too_large":
      return tooLarge(param);
    case "unreachable":
    case "timeout":
    case "bad_status":
      return refuse(ErrorReason.INVALID_REFERENCE_IMAGE, {
        param,
        message: "The image could not be fetched from its URL.",
        cause: error,
      });
  }
}
