// The errors of fetching from outside. Services decide by their kind what the caller is answered.

/**
 * The reason why an outside address gave no bytes:
 * - `invalid_url`: the caller's text is no absolute http(s) URL without credentials.
 * - `unsafe`: it (or a redirect) names a local name, a non-public address or a non-web port.
 * - `unreachable`: there was no address, connection or TLS, or the answer broke off.
 * - `too_large`: more than `maxBytes`, on the wire or decoded.
 * - `timeout`: the time for the whole fetch ran out.
 * - `bad_status`: an answer other than 200, one redirect too many, an unusable encoding.
 */
export type OutsideErrorKind =
  | "invalid_url"
  | "unsafe"
  | "unreachable"
  | "too_large"
  | "timeout"
  | "bad_status";

const messages: Record<OutsideErrorKind, string> = {
  invalid_url: "not an absolute http or https URL without credentials",
  unsafe: "the URL leads to an address that is not public",
  unreachable: "the host could not be reached",
  too_large: "the answer is larger than allowed",
  timeout: "the host took too long",
  bad_status: "the host gave no usable answer",
};

const plainDetail = /^[A-Z0-9_]{1,60}$/;

/**
 * A fetch that failed. Its message and its detail never hold the URL, a host name or an address. It has no `cause`, because the errors
 * below name the host in their text.
 */
export class OutsideError extends Error {
  readonly kind: OutsideErrorKind;
  /** An error code or HTTP status such as `ECONNREFUSED` or `404`, for logs. */
  readonly detail: string | undefined;

  constructor(kind: OutsideErrorKind, detail?: string) {
    super(messages[kind]);
    this.name = "OutsideError";
    this.kind = kind;
    this.detail = detail !== undefined && plainDetail.test(detail) ? detail : undefined;
  }
}

/**
 * An error of the network, TLS, HTTP or zlib layers as an `OutsideError`. All of those except one carry a code. Any other error without
 * a code is a fault of our own code and is returned unchanged.
 */
export function toOutsideError(error: unknown): unknown {
  if (error instanceof OutsideError) return error;
  // This error has no code, and quotes the answer. It is recognised by its name, so that no HTTP client is loaded for it.
  if (error instanceof Error && error.name === "HTTPParserError") {
    return new OutsideError("unreachable", "NOT_HTTP");
  }
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? new OutsideError("unreachable", code) : error;
}
