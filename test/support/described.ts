import { type AnySchema, Ajv2020 as Validator } from "ajv/dist/2020.js";
import { committedDescription } from "../../gateway/openapi.ts";
import { takeEvents } from "../e2e/sse.ts";

interface Media {
  schema?: AnySchema;
}

/** An answer of an operation, as it is described. */
interface DescribedAnswer {
  description: string;
  content?: Record<string, Media>;
}

/** How the members of a union are told apart. */
interface Discriminator {
  propertyName: string;
  mapping: Record<string, string>;
}

interface Operation {
  operationId: string;
  responses: Record<string, DescribedAnswer>;
}

/** A request and its answer. `path` is below `/v1`. */
export interface Exchange {
  method: string;
  path: string;
  status: number;
  contentType: string;
  text: string;
}

/** Finds in what an answer differs from the committed description. */
export interface Described {
  /** Ids of all operations. */
  operationIds: string[];
  /** The operation of a request. Undefined: none. */
  operationOf(exchange: Pick<Exchange, "method" | "path">): Operation | undefined;
  /** Each difference in one line. An answer to a request of no operation has none. */
  faultsOf(exchange: Exchange): string[];
}

/** Reads the committed description. Fields that it does not name are faults, except where it says that there may be more. */
export async function readDescribed(): Promise<Described> {
  const { paths, components } = JSON.parse(await committedDescription());
  const ajv = new Validator({ strict: false, validateFormats: false, allErrors: false });
  ajv.addSchema({ $id: "api", components: closed(components) } as AnySchema);
  const routes = Object.entries<Record<string, Operation>>(paths).map(([path, methods]) => ({
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    weight: (path.match(/\{/g) ?? []).length,
    methods,
  }));
  routes.sort((a, b) => a.weight - b.weight);
  const operationOf: Described["operationOf"] = ({ method, path }) =>
    routes.find(({ pattern }) => pattern.test(path.replace(/\?.*/s, "")))?.methods[
      method.toLowerCase()
    ];
  const validates = (schema: AnySchema, value: unknown): string[] => {
    const local = JSON.stringify(closed(schema)).replaceAll('"#/components', '"api#/components');
    const validate = ajv.compile(JSON.parse(local));
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${instancePath} ${message} ${JSON.stringify(params)} in ${JSON.stringify(value).slice(0, 300)}`,
    );
  };
  return {
    operationIds: routes.flatMap(({ methods }) =>
      Object.values(methods).map(({ operationId }) => operationId),
    ),
    operationOf,
    faultsOf(exchange) {
      const operation = operationOf(exchange);
      if (!operation) return [];
      const told = `${operation.operationId} ${exchange.status}`;
      const answer = operation.responses[exchange.status];
      if (!answer) return [`${told} is not described`];
      const faults = answerFaults(answer, exchange, validates);
      return faults.map((fault) => `${told}: ${fault}`);
    },
  };
}

function answerFaults(
  { description, content = {} }: DescribedAnswer,
  { status, contentType, text }: Exchange,
  validates: (schema: AnySchema, value: unknown) => string[],
): string[] {
  const [type = ""] = contentType.split(";");
  const schema = (content[type] ?? content[type.replace(/\/.*/, "/*")])?.schema;
  if (text === "" && Object.keys(content).length === 0) return [];
  if (schema === undefined) return [`no ${type} is described`];
  if (type === "text/event-stream") {
    // Without a JSON schema it is described as a text.
    const isText = typeof schema === "object" && schema.type === "string";
    return isText ? [] : eventsIn(text).flatMap((one) => validates(schema, one));
  }
  if (type !== "application/json") return [];
  const json = JSON.parse(text);
  const faults = validates(schema, json);
  const { code } = status < 400 ? {} : json.error;
  if (typeof code !== "string" || description.includes(`\`${code}\``)) return faults;
  return [...faults, `${code} is not described`];
}

function eventsIn(text: string): unknown[] {
  const { events } = takeEvents(text);
  return events.flatMap(({ data }) => (data === "" || data === "[DONE]" ? [] : [JSON.parse(data)]));
}

/** The schema without room for fields that it does not name. */
function closed<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(closed) as T;
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).map(([name, value]) => [name, closed(value)]);
  const made = Object.fromEntries(entries);
  if (made.discriminator) return byTag(made) as T;
  const isObject = made.properties && typeof made.properties === "object" && made.type === "object";
  return isObject && made.additionalProperties === undefined && Object.keys(made.properties).length
    ? { ...made, additionalProperties: false }
    : made;
}

/** The member of a union by its tag. A member that the description does not know is not looked at. */
function byTag({ discriminator }: { discriminator: Discriminator }): object {
  const { propertyName, mapping } = discriminator;
  return {
    type: "object",
    required: [propertyName],
    allOf: Object.entries(mapping).map(([value, $ref]) => ({
      if: { properties: { [propertyName]: { const: value } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON schemas.
      then: { $ref },
    })),
  };
}
