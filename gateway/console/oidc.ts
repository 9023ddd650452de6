// Signs people in by an identity provider (OpenID Connect), and decides by its claims which account and rights they get.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Configuration, IDToken, UserInfoResponse } from "openid-client";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { accountOrKeyIdPattern } from "#kit/base/ids.ts";
import type { Edge, OidcSettings } from "../context.ts";
import { queryString } from "../query.ts";
import { oidcCookie } from "./cookies.ts";
import { consoleOrigin, escaped, sendPage } from "./guard.ts";
import { confirmedMs, oidcConfigMs, oidcSignInSeconds, oidcTimeoutMs } from "./limits.ts";
import type { IdentityRights, Sessions } from "./sessions.ts";

/** A sign-in that is under way. The provider's answer is checked against it. The browser keeps it, so that any gateway finds it. */
interface Pending {
  state: string;
  nonce: string;
  verifier: string;
  /** Must the provider ask for the password again? */
  again: boolean;
  /** The place of the app to return to. */
  to: string;
}

const callbackPath = "/console/api/oidc/callback";
/** Places of the app, without another host and without dots. */
const placePattern = /^\/console\/[A-Za-z0-9_/-]{0,200}$/;

/**
 * Sign-in at an identity provider: the authorization code flow with PKCE, state and nonce. A person is (issuer, subject), never an
 * e-mail address. People can change that, and providers can give it to others.
 */
export function oidcRoutes(
  app: FastifyInstance,
  edge: Edge,
  { sessions, oidc }: { sessions: Sessions; oidc: OidcSettings },
): void {
  const provider = createProvider(edge, oidc);

  app.get("/oidc/begin", async (request, reply) => {
    const client = await import("openid-client");
    const redirectUri = `${consoleOrigin(request)}${callbackPath}`;
    const again = queryString(request, "again") === "1";
    const to = queryString(request, "to") ?? "";
    const pending: Pending = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
      again,
      to: placePattern.test(to) ? to : "/console/",
    };
    const config = await provider.config().catch((error) => provider.failed(error, "away"));
    if (!config) return sendFailed(reply, 503, "The identity provider does not answer.");
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: "openid profile",
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: "S256",
      ...(again ? { prompt: "login", max_age: String(confirmedMs / 1_000) } : {}),
    });
    oidcCookie.set(request, reply, encode(pending), oidcSignInSeconds);
    return reply.code(303).header("location", url.href).send();
  });

  app.get("/oidc/callback", async (request, reply) => {
    const pending = decode(oidcCookie.read(request));
    oidcCookie.clear(request, reply);
    if (!pending)
      return sendFailed(reply, 400, "This sign-in was not begun here, or took too long.");
    try {
      const claims = await claimsOf(await provider.config(), request, pending, oidc);
      const rights = rightsOf(claims, oidc, edge.settings.console?.operatorToken !== undefined);
      if (!rights) return sendFailed(reply, 403, noAccount);
      const { iss, sub } = claims;
      const identity = { issuer: iss, subject: sub, confirmed: pending.again };
      await sessions.signInPerson(request, reply, identity, rights);
    } catch (error) {
      if (isRefusal(error, ErrorReason.INVALID_API_KEY)) return sendFailed(reply, 403, noAccount);
      if (isRefusal(error)) throw error;
      provider.failed(error, "refused");
      return sendFailed(reply, 401, "The identity provider did not confirm this sign-in.");
    }
    // A page, and no redirect: a chain of redirects that began at the provider brings no Strict cookie to its end.
    const again = `<meta http-equiv="refresh" content="0; url=${escaped(pending.to)}">`;
    const link = `<p><a href="${escaped(pending.to)}">Go on to the console</a></p>`;
    return sendPage(reply, 200, "genmesh", `${again}${link}`);
  });
}

const noAccount = "This person has no account here: ask who operates this service.";

/** All roles that a claim can give, the highest first. */
const roles = ["operator", "owner", "member"] as const;

/** The rights that the claims give. Undefined: none here. */
function rightsOf(
  claims: Claims,
  { accountClaim, roleClaim }: OidcSettings,
  hasOperators: boolean,
): IdentityRights | undefined {
  const given = [claims[roleClaim]].flat();
  const role = roles.find((one) => given.includes(one) && (hasOperators || one !== "operator"));
  if (role === "operator") return { role };
  const [accountId, ...others] = [claims[accountClaim]].flat();
  const isOne = typeof accountId === "string" && others.length === 0;
  if (!role || !isOne || !accountOrKeyIdPattern.test(accountId)) return undefined;
  return { role, accountId };
}

/** The provider's claims about a person. */
type Claims = IDToken & Partial<UserInfoResponse>;

/** Exchanges the code. Rejects where any part of the answer is not as required. */
async function claimsOf(
  config: Configuration,
  request: FastifyRequest,
  pending: Pending,
  { accountClaim, roleClaim }: OidcSettings,
): Promise<Claims> {
  const client = await import("openid-client");
  const url = new URL(`${consoleOrigin(request)}${request.url}`);
  const tokens = await client.authorizationCodeGrant(config, url, {
    pkceCodeVerifier: pending.verifier,
    expectedState: pending.state,
    expectedNonce: pending.nonce,
    idTokenExpected: true,
    ...(pending.again ? { maxAge: confirmedMs / 1_000 } : {}),
  });
  const claims = tokens.claims();
  if (!claims) throw new Error("the provider gave no ID token");
  const isWhole = accountClaim in claims && roleClaim in claims;
  if (isWhole || !config.serverMetadata().userinfo_endpoint) return claims;
  // Some providers leave claims that were not requested one by one out of the ID token.
  const more = await client.fetchUserInfo(config, tokens.access_token, claims.sub);
  return { ...more, ...claims };
}

/** The provider by its own description, which is loaded when it is needed. */
function createProvider({ clock, log }: Edge, { issuer, clientId, clientSecret }: OidcSettings) {
  let known: { config: Promise<Configuration>; untilMs: number } | undefined;
  const discover = async () => {
    const client = await import("openid-client");
    const isPlain = issuer.startsWith("http:");
    return client.discovery(new URL(issuer), clientId, clientSecret, undefined, {
      timeout: oidcTimeoutMs / 1_000,
      // A provider on this machine. The configuration takes no other with plain HTTP.
      ...(isPlain ? { execute: [client.allowInsecureRequests] } : {}),
    });
  };
  return {
    async config(): Promise<Configuration> {
      if (known && clock.steady() < known.untilMs) return known.config;
      const config = discover();
      known = { config, untilMs: clock.steady() + oidcConfigMs };
      config.catch(() => {
        known = undefined;
      });
      return config;
    },
    /** Logs it for the operator, by codes: a provider's text may name people. */
    failed(error: unknown, how: "away" | "refused"): undefined {
      const {
        name,
        code,
        error: reason,
      } = error as { name?: string; code?: string; error?: string };
      log.warn({ how, name, code, reason }, "sign-in at the identity provider failed");
    },
  };
}

function sendFailed(reply: FastifyReply, status: number, why: string) {
  const body = `<h1>Not signed in</h1><p>${escaped(why)}</p><p><a href="/console/">Back</a></p>`;
  return sendPage(reply, status, "genmesh", body);
}

function encode(pending: Pending): string {
  return Buffer.from(JSON.stringify(pending)).toString("base64url");
}

function decode(value: string | undefined): Pending | undefined {
  try {
    const { state, nonce, verifier, again, to } = JSON.parse(
      Buffer.from(value ?? "", "base64url").toString(),
    );
    const texts = [state, nonce, verifier, to].every((one) => typeof one === "string");
    if (!texts || !placePattern.test(to)) return undefined;
    return { state, nonce, verifier, again: again === true, to };
  } catch {
    return undefined;
  }
}
