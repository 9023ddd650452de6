// For `genmesh catalog check --online`: asks an upstream whose HTTP the catalog declares whether it takes key, model and inputs.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { parseOutputPath, readOutputPath } from "#kit/template/output-path.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { OnlineCheck, OnlineFault } from "../online/index.ts";
import { inputsOf } from "../online/samples.ts";
import { schemaFaults } from "../online/schema.ts";
import { declarationOf } from "./abilities.ts";
import { meaningOf } from "./answers.ts";
import { headersOf } from "./auth.ts";
import { type Declaration, type Meaning, meanings } from "./declaration.ts";
import { declaredHeaders } from "./headers.ts";
import { fillPath, namesIn, pathOf, urlName } from "./paths.ts";

/**
 * Asks the upstream's free question, whether the model is among those that it names, and whether its description knows each key of the
 * calls' inputs.
 */
export const checkDeclaredOnline: OnlineCheck = async (asked) => {
  const { upstream, model, read, secrets } = asked;
  const declaration = declarationOf(upstream);
  const { check } = declaration;
  const faults: OnlineFault[] = [];
  const question = check ?? questionOf(declaration, model.calls[0]?.model);
  if (question) {
    // Without its variable the request has no key, and the upstream says so.
    const auth = await headersOf(upstream, declaration, { secrets }, Date.now());
    const headers = { ...declaredHeaders(declaration), ...auth };
    const url = `${upstream.baseUrl}${question.get}`;
    const { value, fault } = await read(upstream, url, { key: "none", headers });
    const isOfKey = fault !== undefined && /answers 40[13]$|no JSON/.test(fault);
    // A task that cannot be may be refused in any other way.
    if (!check && fault !== undefined && !isOfKey) return describedFaults(asked, declaration);
    if (fault !== undefined) {
      return [{ path: ["upstream"], message: `the upstream's question ${fault}` }];
    }
    const meaning = meaningOfAnswer(declaration, value);
    if (meaning !== undefined) {
      const message = `the upstream's question is refused (answers.${meaning})`;
      return [{ path: ["upstream"], message }];
    }
    const names = namesAt(check?.models, value);
    for (const call of names ? model.calls : []) {
      if (names?.has(call.model)) continue;
      faults.push({
        call,
        path: ["model"],
        message: "is none of the models that the upstream names",
      });
    }
  }
  return [...faults, ...(await describedFaults(asked, declaration))];
};

/**
 * The meaning of an answer that is a success of HTTP. Some services refuse a key so. A task that cannot be may be refused in any other
 * way, so without `check` a refused key alone counts.
 */
function meaningOfAnswer(
  { answers, check }: Declaration,
  value: JsonValue | undefined,
): Meaning | undefined {
  if (!isJsonObject(value)) return undefined;
  return meaningOf(answers, check ? meanings : ["denied"], value);
}

/** The id of a task that cannot be. */
const nowhere = "genmesh-check";

/** The look at a task that cannot be, for an upstream without a question. `model`: a model of the upstream, where its paths name one. */
function questionOf({ poll }: Declaration, model = nowhere): { get: string } | undefined {
  const path = poll?.get;
  if (path === undefined || urlName(path) !== undefined) return undefined;
  const values = Object.fromEntries(namesIn(path).map((name) => [name, nowhere]));
  return { get: fillPath(path, { ...values, model }) };
}

/** The names at a place, each also without the path before it. Undefined where the declaration names no place. */
function namesAt(
  place: string | undefined,
  value: JsonValue | undefined,
): ReadonlySet<string> | undefined {
  const path = place === undefined ? undefined : parseOutputPath(place);
  if (!path || value === undefined) return undefined;
  const texts = readOutputPath(path, value).filter((one) => typeof one === "string");
  return new Set(texts.flatMap((text) => [text, text.slice(text.lastIndexOf("/") + 1)]));
}

/** Compares each input with the schema of the path of `create`. */
async function describedFaults(
  { upstream, model, read }: Parameters<OnlineCheck>[0],
  { openapi, create }: Declaration,
): Promise<OnlineFault[]> {
  if (openapi === undefined) return [];
  const { value, fault } = await read(upstream, new URL(openapi, upstream.baseUrl).href, {
    // A description is public, and may be on an origin that must not see the key.
    key: "none",
  });
  if (fault !== undefined || !isJsonObject(value)) {
    return [{ path: ["upstream"], message: `the upstream's description ${fault ?? "is none"}` }];
  }
  return model.calls.flatMap((call): OnlineFault[] => {
    const schema = bodySchema(
      value,
      upstream,
      fillPath(pathOf(create), { model: call.model, job: "job" }),
    );
    if (schema === undefined) {
      return [{ call, path: ["model"], message: "has no path in the upstream's description" }];
    }
    const found = inputsOf(model, call).flatMap((input) =>
      schemaFaults(input, schema, value, ["input"]),
    );
    return found.map(({ path, message }) => ({ call, path, message }));
  });
}

/** The schema of the JSON body of a path. The description's paths may have the base URL's own path before them. */
function bodySchema(
  document: JsonObject,
  { baseUrl }: Upstream,
  path: string,
): JsonValue | undefined {
  const { paths } = document;
  if (!isJsonObject(paths)) return undefined;
  const item = paths[path] ?? paths[`${new URL(baseUrl).pathname.replace(/\/$/, "")}${path}`];
  let found: JsonValue | undefined = item;
  for (const step of ["post", "requestBody", "content", "application/json", "schema"]) {
    found = isJsonObject(found) ? found[step] : undefined;
  }
  return found;
}
