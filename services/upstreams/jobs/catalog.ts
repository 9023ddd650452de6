// Finds faults in a declaration when a catalog is read: names that nothing takes, paths that lead elsewhere, states without a
// meaning.

import type { JsonValue } from "#kit/base/json.ts";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import { partsOf } from "#kit/template/template.ts";
import { isNamedByUs } from "./abilities.ts";
import { type Declaration, freshUuid, type Marks, meanings, type Step } from "./declaration.ts";
import { namesIn, urlName } from "./paths.ts";

/** Names that every path and body may use. */
const givenNames = ["model", "job"] as const;
/** Headers that are made here, or that would carry what belongs elsewhere. */
const ownHeaders =
  /^(authorization|proxy-authorization|cookie|host|connection|te|transfer-encoding|upgrade|accept-encoding|content-.*|x-forwarded-.*)$/i;
/** A value of this form is more likely a key than a constant. */
const keyLike = /^(bearer |basic |sk-|key-|r8_)|^[A-Za-z0-9+/_-]{32,}={0,2}$/i;

/** Faults of a declaration that its types do not show, each with its path below `jobs`. */
export function declarationFaults(declaration: Declaration, baseUrl: string): FoundFault[] {
  const steps = stepsOf(declaration);
  return [
    ...steps.flatMap(({ name, step, known }) => stepFaults(name, step, known)),
    ...headerFaults(["headers"], declaration.headers, declaration.auth),
    ...createFaults(declaration),
    ...checkFaults(declaration),
    ...stateFaults(declaration),
    ...markFaults(declaration),
    ...cancelFaults(declaration),
    ...originFaults(declaration, baseUrl),
  ];
}

/** Faults of a model's call at this upstream. `input`: the call's template. */
export function declaredCallFaults(
  { create, poll, result }: Declaration,
  call: { input: JsonValue; output: string; outputs: number },
  at: (...rest: FaultPath) => FaultPath,
): FoundFault[] {
  const faults: FoundFault[] = [];
  const isFile = (poll ? result?.gives : create.gives) === "file";
  if (isFile && call.outputs > 1) {
    faults.push({ path: at(), message: "gives one file, and the model offers several images" });
  }
  if (!isFile && call.output === "") {
    faults.push({ path: at("output"), message: "is required by its upstream" });
  }
  const path = create.post ?? create.put ?? "";
  const isNamed =
    namesIn(path).includes("model") ||
    partsOf(call.input).some(
      (part) => part.kind === "placeholder" && part.placeholder.name === "model",
    );
  if (!isNamed) {
    const message = "names no model: place ${model} here, or in the path of create";
    faults.push({ path: at("input"), message });
  }
  return faults;
}

/** A step, and the names that its path and its body may use. */
interface NamedStep {
  name: "create" | "poll" | "result" | "cancel";
  step: Step & { body?: JsonValue | undefined };
  known: readonly string[];
}

function stepsOf({ create, poll, result, cancel }: Declaration): NamedStep[] {
  const created = [...givenNames, ...Object.keys(create.take ?? {})];
  const looked = [...created, ...Object.keys(poll?.take ?? {})];
  const steps: NamedStep[] = [{ name: "create", step: create, known: givenNames }];
  if (poll) steps.push({ name: "poll", step: poll as NamedStep["step"], known: created });
  if (result) steps.push({ name: "result", step: result as NamedStep["step"], known: looked });
  if (cancel) steps.push({ name: "cancel", step: cancel as NamedStep["step"], known: created });
  return steps;
}

function stepFaults(name: string, step: NamedStep["step"], known: readonly string[]): FoundFault[] {
  const methods = (["get", "post", "put", "delete"] as const).filter(
    (one) => step[one] !== undefined,
  );
  const [method] = methods;
  if (method === undefined)
    return [{ path: [name], message: "must have one of get, post, put, delete" }];
  if (methods.length > 1) return [{ path: [name], message: "must have one path" }];
  const path = [name, method];
  const message = pathFault(step[method] ?? "", known);
  const inBody = partsOf(step.body ?? null).flatMap((part): FoundFault[] => {
    const place = [name, "body", ...part.path];
    if (part.kind === "fault") return [{ path: place, message: part.message }];
    const named = part.kind === "map" ? part.of.name : part.placeholder.name;
    return known.includes(named)
      ? []
      : [{ path: place, message: `names ${named}, which nothing takes before` }];
  });
  return [
    ...(message === undefined ? [] : [{ path, message }]),
    ...inBody,
    ...headerFaults([name, "headers"], step.headers),
  ];
}

/** The fault of a path. Undefined: there is none. */
function pathFault(path: string, known: readonly string[]): string | undefined {
  const strange = namesIn(path).find((name) => !known.includes(name));
  if (strange !== undefined) return `names ${strange}, which nothing takes before`;
  if (urlName(path) !== undefined) return undefined;
  if (!/^\/(?!\/)/.test(path))
    return "must begin with one /, or be wholly a URL that an answer gave, like ${url}";
  const plain = path.replace(/\$\{[A-Za-z]+(?::path)?\}/g, "x");
  if (/[\s#\\]/.test(plain) || plain.includes("$"))
    return "must have no blank, # or $ beside ${name}";
  const [before = "", query] = plain.split("?");
  // Servers and URLs read %2e as a dot.
  const parts = before.replace(/%2e/gi, ".").split("/");
  if (parts.some((part) => part === "." || part === "..")) return "must have no . or ..";
  const names =
    path
      .split("?")[1]
      ?.split("&")
      .map((pair) => pair.split("=")[0] ?? "") ?? [];
  if (query !== undefined && names.some((one) => one.includes("${")))
    return "may have a ${name} in the value of a query alone";
  return undefined;
}

function headerFaults(
  path: FaultPath,
  headers: Readonly<Record<string, string>> | undefined,
  auth?: Declaration["auth"],
): FoundFault[] {
  const own = typeof auth === "object" && "header" in auth ? auth.header.toLowerCase() : undefined;
  return Object.entries(headers ?? {}).flatMap(([name, value]) => {
    const at = [...path, name];
    if (ownHeaders.test(name) || name.toLowerCase() === own) {
      return [{ path: at, message: "is a header that is made here" }];
    }
    if (value.replaceAll(freshUuid, "").includes("${")) {
      const message = `may name ${freshUuid} alone, which is another UUID in each request`;
      return [{ path: at, message }];
    }
    if (keyLike.test(value)) {
      return [{ path: at, message: "looks like a key; a key belongs into apiKeyEnv" }];
    }
    return [];
  });
}

function createFaults({ create, poll, result, states }: Declaration): FoundFault[] {
  const faults: FoundFault[] = [];
  if (create.get !== undefined || create.delete !== undefined) {
    faults.push({ path: ["create"], message: "must be post or put, which send the model's input" });
  }
  const strange = Object.keys(create.take ?? {}).find((name) => isGiven(name));
  if (strange !== undefined) {
    faults.push({ path: ["create", "take", strange], message: "is a name that is there already" });
  }
  const again = Object.keys(poll?.take ?? {}).find(
    (name) => isGiven(name) || Object.hasOwn(create.take ?? {}, name),
  );
  if (again !== undefined) {
    faults.push({ path: ["poll", "take", again], message: "is a name that is there already" });
  }
  if (poll) {
    const path = poll.get ?? poll.post ?? poll.put ?? "";
    const taken = Object.keys(create.take ?? {});
    const text = `${path} ${JSON.stringify(poll.body ?? "")}`;
    const tells =
      taken.some((name) => text.includes(`\${${name}`)) || isNamedByUs({ create, poll });
    if (!tells)
      faults.push({
        path: ["poll"],
        message: "does not tell tasks apart: name what create takes, or ${job}",
      });
    if (create.gives)
      faults.push({ path: ["create", "gives"], message: "is for a declaration without poll" });
    if (!states) faults.push({ path: ["states"], message: "is required by poll" });
  } else {
    if (result)
      faults.push({ path: ["result"], message: "needs poll, which tells that a task is done" });
    if (states) faults.push({ path: ["states"], message: "needs poll, which tells the state" });
  }
  return faults;
}

/** The question and the idempotency key are of the same forms as other paths and headers. */
function checkFaults({ check, create, auth }: Declaration): FoundFault[] {
  const ofPath = check && pathFault(check.get, []);
  const key = create.key === undefined ? [] : headerFaults([], { [create.key]: "job" }, auth);
  const isStrange =
    typeof auth === "object" &&
    "header" in auth &&
    ownHeaders.test(auth.header) &&
    !/^authorization$/i.test(auth.header);
  return [
    ...(ofPath === undefined ? [] : [{ path: ["check", "get"], message: ofPath }]),
    ...key.map(({ message }) => ({ path: ["create", "key"], message })),
    ...(isStrange ? [{ path: ["auth", "header"], message: "is a header that is made here" }] : []),
  ];
}

function isGiven(name: string): boolean {
  return givenNames.some((given) => given === name);
}

function stateFaults({ states, poll }: Declaration): FoundFault[] {
  if (!states || !poll) return [];
  const meant = new Set(Object.values(states));
  return (["done", "running"] as const)
    .filter((one) => !meant.has(one))
    .map((one) => ({ path: ["states"], message: `has no state that is ${one}` }));
}

/** A pattern may not mean two things, and what is missing means something once a task is done. */
function markFaults({ answers, poll }: Declaration): FoundFault[] {
  const taken = new Map<string, string>();
  return meanings.flatMap((meaning) =>
    Object.entries(answers[meaning] ?? {}).flatMap(([place, patterns]) =>
      patterns.flatMap((pattern, index) => {
        const path = ["answers", meaning, place, index];
        const key = JSON.stringify([
          place,
          typeof pattern === "string" ? pattern.toLowerCase() : pattern,
        ]);
        const other = taken.get(key);
        taken.set(key, meaning);
        if (other !== undefined) return [{ path, message: `means ${other} already` }];
        if (pattern === null && meaning !== "refused") {
          return [{ path, message: "null, for what is missing, is for refused alone" }];
        }
        if (pattern === null && !poll)
          return [{ path, message: "null needs poll, which tells that a task is done" }];
        return [];
      }),
    ),
  );
}

function cancelFaults({ cancel, states, poll }: Declaration): FoundFault[] {
  if (!cancel) return [];
  if (!poll)
    return [{ path: ["cancel"], message: "needs poll, because there is no task otherwise" }];
  const faults: FoundFault[] = (cancel.when ?? []).flatMap((state, index) =>
    states && Object.hasOwn(states, state)
      ? []
      : [{ path: ["cancel", "when", index], message: "is none of states" }],
  );
  if (cancel.delete !== undefined && !cancel.when) {
    const message = "needs when: of a task that has ended, delete may remove the output";
    faults.push({ path: ["cancel"], message });
  }
  const says: Marks = cancel.says ?? {};
  if (Object.values(says).some((patterns) => patterns.includes(null))) {
    faults.push({
      path: ["cancel", "says"],
      message: "null, for what is missing, is for refused alone",
    });
  }
  return faults;
}

function originFaults(
  { origins, download, auth, openapi }: Declaration,
  baseUrl: string,
): FoundFault[] {
  const faults: FoundFault[] = origins.flatMap((origin, index) => {
    const message = originFault(origin);
    return message === undefined ? [] : [{ path: ["origins", index], message }];
  });
  if (download && auth === "none") {
    faults.push({ path: ["download"], message: "needs a key, and auth is none" });
  }
  if (openapi !== undefined && !URL.canParse(openapi, baseUrl)) {
    faults.push({ path: ["openapi"], message: "must be a URL" });
  }
  return faults;
}

function originFault(origin: string): string | undefined {
  const isWild = origin.startsWith("https://*.");
  const url = URL.parse(isWild ? origin.replace("*.", "any.") : origin);
  if (!url || origin.replace("https://*.", "").includes("*"))
    return "must be an origin like https://api.example.com or https://*.example.com";
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback))
    return "must be https";
  const isBare =
    url.pathname === "/" &&
    url.search === "" &&
    url.hash === "" &&
    url.username === "" &&
    !origin.endsWith("/");
  if (!isBare) return "must have no path, user or query";
  if (isWild && url.hostname.split(".").length < 3) return "must have two names or more behind *";
  return undefined;
}
