// Decides whether an internal call may use its method: by the token that it brings, and by the principal that the proto file asks
// for.

import { hash, timingSafeEqual } from "node:crypto";
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { memo } from "#kit/base/memo.ts";
import { RpcAccess, rpc_access } from "#proto/genmesh/common/v1/rpc_access_pb.ts";
import { type IsCaller, isOpenService } from "./gate.ts";
import {
  parsePrincipal,
  principalHeader,
  principalKey,
  refuseWithoutPrincipal,
} from "./principal.ts";

/** The tokens that a server accepts. */
export interface AccessTokens {
  /** All tokens that are valid now. Clients send the first one. */
  mesh: readonly string[];
  /** Opens the operator's methods. Absent: those are closed. */
  admin?: string;
}

/**
 * Refuses internal calls without the token, or the principal, that their method's `rpc_access` asks for. The health service alone takes
 * calls without either.
 */
export function accessInterceptor(tokens: AccessTokens): Interceptor {
  const roleOf = roles(tokens);
  // Kept, because each look-up decodes the descriptor's bytes.
  const access = memo((method: DescMethod) => getOption(method, rpc_access));
  return (next) => (req) => {
    if (isOpenService(req.service.typeName)) return next(req);
    const role = roleOf(req.header.get("authorization") ?? "");
    if (!role) refuse(ErrorReason.CALLER_UNAUTHENTICATED);
    const isAdmin = role === "admin";
    const needed = access(req.method);
    if (needed === RpcAccess.ADMIN && !isAdmin) {
      refuse(ErrorReason.CALLER_FORBIDDEN, { metadata: { needs: "the admin token" } });
    }
    const principal = parsePrincipal(req.header.get(principalHeader));
    if (needed === RpcAccess.PRINCIPAL && !principal) refuseWithoutPrincipal();
    req.contextValues.set(principalKey, principal);
    return next(req);
  };
}

/** Decides by the head of a call whether it brings one of `tokens`, before its body is read. */
export function callerCheck(tokens: AccessTokens): IsCaller {
  const roleOf = roles(tokens);
  return (authorization) => roleOf(authorization ?? "") !== undefined;
}

function roles(tokens: AccessTokens): (authorization: string) => "admin" | "mesh" | undefined {
  const mesh = tokens.mesh.map(digest);
  const admin = tokens.admin ? [digest(tokens.admin)] : [];
  return remembered((authorization) => {
    const sent = /^Bearer (.+)$/i.exec(authorization)?.[1];
    if (!sent) return undefined;
    const sentDigest = digest(sent);
    if (includes(admin, sentDigest)) return "admin";
    return includes(mesh, sentDigest) ? "mesh" : undefined;
  });
}

/**
 * Keeps the answer of `roleOf` for each header that it accepts. These are the few valid ones, so that not every call of a peer costs a
 * digest. Refused headers are not kept. A look-up shows of a valid header only that it differs.
 */
function remembered(
  roleOf: (authorization: string) => "admin" | "mesh" | undefined,
): (authorization: string) => "admin" | "mesh" | undefined {
  const accepted = new Map<string, "admin" | "mesh">();
  return (authorization) => {
    const known = accepted.get(authorization);
    if (known) return known;
    const role = roleOf(authorization);
    if (role) accepted.set(authorization, role);
    return role;
  };
}

/** Sends `token` on every call that has no authorization yet. */
export function tokenInterceptor(token: string): Interceptor {
  const value = `Bearer ${token}`;
  return (next) => (req) => {
    if (!req.header.has("authorization")) req.header.set("authorization", value);
    return next(req);
  };
}

/**
 * SHA-256 of a secret, by which it is looked up and compared. All have the length that timingSafeEqual needs, for any text that a
 * caller sends.
 */
export function digest(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

function includes(known: readonly Buffer[], sent: Buffer): boolean {
  let found = false;
  for (const one of known) found = timingSafeEqual(one, sent) || found;
  return found;
}
