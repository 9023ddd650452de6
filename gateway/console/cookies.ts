import type { FastifyReply, FastifyRequest } from "fastify";

/** A cookie of the console. Over HTTPS its name binds it to this very host, and to HTTPS; a loopback has neither to bind to. */
export interface ConsoleCookie {
  /** Its value; undefined where it is absent, or there are several: one of them was planted by another program of the host. */
  read(request: FastifyRequest): string | undefined;
  /** Without `seconds` it lasts as long as the browser. */
  set(request: FastifyRequest, reply: FastifyReply, value: string, seconds?: number): void;
  clear(request: FastifyRequest, reply: FastifyReply): void;
}

/** The session's id. It comes with requests of the console's own pages alone. */
export const sessionCookie = createCookie("genmesh", "SameSite=Strict");

/**
 * A sign-in at an identity provider that is under way. The provider's answer comes from another site, so this one is Lax; it
 * opens nothing by itself.
 */
export const oidcCookie = createCookie("genmesh-oidc", "SameSite=Lax");

/** `attributes` beside those that all have. A value is of characters that need no quoting. */
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

/** Did the browser speak TLS, to us or to a proxy that is trusted to say so? */
export function isHttps(request: FastifyRequest): boolean {
  return request.protocol === "https";
}
