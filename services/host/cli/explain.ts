import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason, isRefusal } from "#kit/errors.ts";
import { ConfigError } from "../env.ts";

/** One line for a person: what went wrong and what to do about it. */
export function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (isRefusal(error, ErrorReason.CALLER_UNAUTHENTICATED, ErrorReason.CALLER_FORBIDDEN)) {
    return "the server does not accept this admin token; set GENMESH_ADMIN_TOKEN, or GENMESH_DATA_DIR to the server's data directory";
  }
  if (isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) {
    const cause = error.cause instanceof ConnectError ? `: ${error.cause.rawMessage}` : "";
    return `the server cannot be reached${cause}; is it running, and is --server right?`;
  }
  if (isRefusal(error)) {
    const facts = Object.entries(error.metadata).map(([name, value]) => `${name}=${value}`);
    return facts.length > 0 ? `${error.message} (${facts.join(", ")})` : error.message;
  }
  if (error instanceof ConnectError && error.code === Code.Unimplemented) {
    return `the server does not offer this: ${error.rawMessage}`;
  }
  return error instanceof Error ? error.message : String(error);
}
