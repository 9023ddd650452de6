// Turns an error of a command into one line for its operator, with advice on what to do.

import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason, isRefusal, type RefusalError, reasonName } from "#kit/base/errors.ts";
import { ConfigError } from "../env.ts";

const tokenHint =
  "set GENMESH_ADMIN_TOKEN, or GENMESH_DATA_DIR to the data directory of the server";
/** Advice where no genmesh answers. */
export const serverHint =
  "is it running, and is --server the address of its gRPC port (with another GRPC_PORT: --server 127.0.0.1:PORT)?";

/** The rules of fields that an operator fills in, by their names in the protocol or in a key's body. */
const rules: Readonly<Record<string, string>> = {
  name: "--name must be 1 to 200 characters, and not blank",
  api_key: "--api-key must be 20 to 200 characters of A-Z, a-z, 0-9, _ and -",
  expiresAt: "--expires-at must lie in the future",
  days: "--to must lie after --from, by at most 92 days",
  entry_number:
    "--entry must be the number of an entry of which something is left to give or take back",
  amount: "--usd or --amount must be above 0, and at most what is left of the entry",
};

/** One line for people: the error, and advice. */
export function explain(error: unknown): string {
  if (isRefusal(error)) return refusalText(error);
  const message = error instanceof Error ? error.message : String(error);
  // The server's text may contain control characters. They become blanks, so that the output is one line.
  return message.replace(/\p{Cc}+/gu, " ").trim();
}

/** The registered reason of a refusal, for programs. */
export function reasonOf(error: unknown): string | undefined {
  if (isRefusal(error)) return reasonName(error.reason);
  return error instanceof ConfigError ? "BAD_CONFIGURATION" : undefined;
}

function refusalText(refusal: RefusalError): string {
  switch (refusal.reason) {
    case ErrorReason.CALLER_UNAUTHENTICATED:
    case ErrorReason.CALLER_FORBIDDEN:
      return `the server does not accept this admin token: ${tokenHint}`;
    case ErrorReason.SERVICE_UNAVAILABLE:
      // `away.ts` wrote this message.
      return refusal.message;
    case ErrorReason.INTERNAL_ERROR:
      return internalText(refusal);
    case ErrorReason.ACCOUNT_NOT_FOUND:
      return "there is no such account (genmesh account list shows them)";
    case ErrorReason.KEY_NOT_FOUND:
      return "there is no such key (genmesh key list ACCOUNT shows them)";
    case ErrorReason.INVALID_ARGUMENT:
      return rules[refusal.metadata.field ?? ""] ?? refusal.message;
    case ErrorReason.INVALID_VALUE:
      return rules[refusal.param ?? ""] ?? refusal.message;
    default: {
      const facts = Object.entries(refusal.metadata).map(([name, value]) => `${name}=${value}`);
      return facts.length > 0 ? `${refusal.message} (${facts.join(", ")})` : refusal.message;
    }
  }
}

/** An error that the server did not write itself. The address does not speak gRPC, or lacks the method. */
function internalText(refusal: RefusalError): string {
  const incident = refusal.metadata.incident;
  if (incident) return `the server failed; its log has the details under ${incident}`;
  if (refusal.cause instanceof ConnectError && refusal.cause.code === Code.Unimplemented) {
    return `the server does not offer this${causeOf(refusal)}`;
  }
  return `the server does not answer as a genmesh does${causeOf(refusal)}: ${serverHint}`;
}

function causeOf(refusal: RefusalError): string {
  return refusal.cause instanceof ConnectError ? ` (${refusal.cause.rawMessage})` : "";
}
