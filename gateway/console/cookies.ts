// Sets and reads the two cookies of the console: that of a session, and that of a sign-in under way at an identity provider.

import type { FastifyReply, FastifyRequest } from "fastify";

/** A cookie of the console. Over HTTPS its name binds it to this host, and to HTTPS. On a loopback that is not possible. */
export interface ConsoleCookie {
  /** Its value. Undefined where it is absent, or where there are several: another program of the host may have set one of them. */
  read(request: FastifyRequest): string | undefined;
  /** Without `seconds` it lasts as long as the browser. */
  set(request: FastifyRequest, reply: FastifyReply, value: string, seconds?: number): void;
  clear(request: FastifyRequest, reply: FastifyReply): void;
}

/** The session's id. It comes only with requests of the console's own pages. */
export const sessionCookie = createCookie("genmesh", "SameSite=Strict");

/**
 * A sign-in at an identity provider that is under way. The provider's answer comes from another site, so this one is Lax. It opens
 * nothing by itself.
 */
export const oidcCookie = createCookie("genmesh-oidc", "SameSite=Lax");

/** `attributes` beside those that all cookies have. A value has only characters that need no quoting. */
function createCookie(name: string, attributes: string): ConsoleCookie {
  const nameFor = (request: FastifyRequest) => (isHttps(request) ? `__Host-${name}` : name);
  const send: ConsoleCookie["set"] = (request, reply, value, seconds) => {
    const secure = isHttps(request) ? "; Secure" : "";
    const age = seconds === undefined ? "" : `; Max-Age=${seconds}`;
    const cookie = `${nameFor(request)}=${value}; Path=/; HttpOnly; ${attributes}${secure}${age}`;
    // Fastify sends each of several.
    reply.header("set-cookie", cookie);
  };
  return {
    read(request) {
      const wanted = `${nameFor(request)}=`;
      const parts = (request.headers.cookie ?? "").split(";").map((part) => part.trim());
      const values = parts.filter((part) => part.startsWith(wanted));
      return values.length === 1 ? values[0]?.slice(wanted.length) : undefined;
    },
    set: send,
    clear: (request, reply) => send(request, reply, "", 0),
  };
}

/** Did the browser use TLS, to this process or to a trusted proxy? */
export function isHttps(request: FastifyRequest): boolean {
  return request.protocol === "https";
}
