// Carries the account and key of a request through internal calls: in a header, and in the context of a handler.

import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { accountOrKeyIdPattern } from "#kit/base/ids.ts";

/** The account and key for which an internal call is made. */
export interface Principal {
  accountId: string;
  keyId: string;
}

/** Header of a principal: `ACCOUNT_ID/KEY_ID`. */
export const principalHeader = "genmesh-principal";
/** Header of the request id, inside the mesh as at the edge. */
export const requestIdHeader = "x-request-id";

const principalKey = createContextKey<Principal | undefined>(undefined, {
  description: "principal",
});

/** The header's value for a principal. */
export function formatPrincipal(principal: Principal): string {
  return `${principal.accountId}/${principal.keyId}`;
}

/** Reads the header. Undefined where it is absent or makes no sense. */
export function parsePrincipal(value: string | null): Principal | undefined {
  const [accountId, keyId, ...rest] = (value ?? "").split("/");
  if (!accountId || !keyId || rest.length > 0) return undefined;
  return accountOrKeyIdPattern.test(accountId) && accountOrKeyIdPattern.test(keyId)
    ? { accountId, keyId }
    : undefined;
}

/** Key under which the access interceptor leaves the principal in a call's context values. */
export { principalKey };

/** The caller of a method whose access is PRINCIPAL. */
export function principalOf(context: HandlerContext): Principal {
  const principal = context.values.get(principalKey);
  return principal ?? refuseWithoutPrincipal();
}

/** Throws the error of a call that names no principal. */
export function refuseWithoutPrincipal(): never {
  refuse(ErrorReason.CALLER_UNAUTHENTICATED, {
    message: "The internal call names no principal.",
    metadata: { needs: principalHeader },
  });
}

/** Headers of an internal call for a principal and request. */
export function callHeaders(principal: Principal, requestId: string): Record<string, string> {
  return { [principalHeader]: formatPrincipal(principal), [requestIdHeader]: requestId };
}
