import { randomUUID } from "node:crypto";
import type { JsonObject } from "#kit/base/json.ts";
import type { MediaOutputs } from "../scripted-media-upstream.ts";
import type { SeenRequest } from "../scripted-upstream.ts";
import { type KeyForm, keyFault } from "./declared-common.ts";
import { type DeclaredName, declaredFacts } from "./declared-facts.ts";
import {
  type Answer,
  bytesMade,
  type Double,
  type Makes,
  type Route,
  reply,
  replyText,
  sampleOutputs,
  startDouble,
  startFiles,
  typeOfBytes,
} from "./double.ts";

/** The state of a task, in words of our own. Each service has its own word for each. */
export type State =
  | "waiting"
  | "running"
  | "done"
  | "refused"
  | "failed"
  | "cancelled"
  /** It took too long. Only some services have a word for it. */
  | "expired";

/** A task of a double. */
export interface Task {
  id: string;
  /** The part of the path of its beginning that names a model or a way. */
  way: string;
  input: JsonObject;
  state: State;
  /** The link to what was made. */
  url: string;
  /** A link to this task that the service itself gives, where it does. */
  lookUrl: string;
}

/** How a service cancels a task. */
interface Cancelling {
  method: string;
  path: RegExp;
  /** The states in which a task can be cancelled. */
  in: State[];
  /** Does it delete the record of a task that has ended, or also of one that it cancels? */
  deletes?: "ended" | "all";
  /** `isOther`: as the second of two sources says. */
  answer(task: Task, isOther: boolean): Answer;
}

/** The behaviour of a service. Each trait names its source. */
export interface Facts {
  makes: Makes;
  /** The path of `baseUrl`. */
  base: string;
  key: KeyForm;
  /** The header of a constant that a request which begins a task must have. `isForAll`: every request. */
  constant?: [name: string, value: string];
  isForAll?: boolean;
  /** The header that must be another UUID in each request, and the answer to one that was there before. */
  fresh?: { header: string; again: Answer };
  /** Are its ids integers above 2^53? */
  hasLongIds?: boolean;
  /** The request that begins a task. Its group is the task's way. */
  create: RegExp;
  /** The fault in an input. Undefined: there is none. */
  faultOf?(input: JsonObject, way: string): string | undefined;
  /** The answer to an input with a fault. */
  invalid(message: string): Answer;
  created(task: Task): JsonObject;
  look: RegExp;
  /** The id that a look names. By default the last group of its path. */
  idOf?(seen: SeenRequest, parts: string[]): string;
  told(task: Task, isOther: boolean): Answer;
  /** The answer for an id without a task. */
  missing: Answer;
  cancel?: Cancelling | undefined;
  /** One more request for the link of a task that is done. Its query names the id. */
  result?: { path: RegExp; answer(task: Task): Answer };
  /** The most tasks in these states, and the answer beyond. */
  most?: { tasks: number; in: State[]; answer: Answer };
  /** The name that the input gives the task. The service knows the task by both. */
  ourId?(input: JsonObject): string | undefined;
  /** The answer to a second task of the same name. Sources differ: by default it is made. */
  isTaken?: Answer;
  /** Does it have a word for a task that took too long? */
  expires?: boolean;
  /** Milliseconds that a link lasts, and a task's record. Undefined: for ever. */
  linkMs?: number;
  recordMs?: number;
  /** Does each look name a fresh link? Elsewhere the link of a task stays. */
  hasFreshLinks?: boolean;
  /** Is the file at the service's own origin, which wants the key and redirects elsewhere? */
  wantsKeyForFiles?: boolean;
  /** Are looks at a host of their own? The first host knows no task then. */
  hasCluster?: boolean;
  /** The answer to the request is the result. */
  isWithin?: boolean;
  /** The answers to questions that cost nothing, by their paths. */
  free?: Readonly<Record<string, Answer>>;
  /** A description of its inputs, for which it wants no key. */
  openapi?: { path: string; document: JsonObject };
  /** Documented answers to a request that begins a task, by words. */
  answers: Readonly<Record<string, Answer>>;
}

type RouteName = "create" | "look" | "result" | "cancel" | "own" | "free" | "openapi";

/** The end of the next task, or of a number of them. */
export interface Plan {
  end: Extract<State, "done" | "refused" | "failed" | "expired">;
  /** `looks`: each look finds the task further. `held`: the task waits for `advance` or `finish`. */
  pace: "looks" | "held";
  /** Links that have ended before they are named. */
  deadLinks: number;
}

/** The first of the integers above 2^53 that name tasks. */
const longIds = 9_223_372_036_854_770_000n;

const isUuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

const usualPlan: Plan = { end: "done", pace: "looks", deadLinks: 0 };

/** Settings of a double. */
export interface DeclaredOptions {
  port?: number;
  /** Its key. Default: a key of its own. */
  key?: string;
  /** Its time in milliseconds, for signed keys, links and records. */
  now?: () => number;
  outputs?: MediaOutputs;
  /** A service with looks at a host of their own has them at its first host. */
  isOneHost?: boolean;
  /** The plan of a task, by its input. The method `plan` comes before it. */
  planOf?: (input: JsonObject) => Partial<Plan>;
  /** Where two sources of a trait differ, the service does as the second one says. */
  isOther?: boolean;
}

/** A double of a service. */
export type DeclaredService = Awaited<ReturnType<typeof startDeclaredService>>;

/** Starts a double of a service. */
export async function startDeclaredService(
  name: DeclaredName,
  {
    port = 0,
    key = `key-of-${name}`,
    now = Date.now,
    outputs,
    isOneHost = false,
    planOf = () => ({}),
    isOther = false,
  }: DeclaredOptions = {},
) {
  const facts: Facts = declaredFacts[name];
  const hasCluster = facts.hasCluster === true && !isOneHost;
  const made = outputs ?? (await sampleOutputs());
  const [file = new Uint8Array()] = bytesMade(facts.makes, 1, made);
  const type = typeOfBytes(file);
  const bornAt = new Map<object | string, number>();
  const isOver = (what: object | string, lastsMs = Number.POSITIVE_INFINITY) =>
    now() - (bornAt.get(what) ?? now()) >= lastsMs;
  const files = await startFiles(({ headers, path }) => {
    const hasKey = headers.authorization || headers["x-key"] || headers["x-goog-api-key"];
    if (hasKey) return reply(400, { error: "a store takes no key" });
    return isOver(path, facts.linkMs) ? replyText(403, "the link has ended") : undefined;
  });
  /** By each id under which a task is known. */
  const tasks = new Map<string, Task & Plan>();
  const ordered: (Task & Plan)[] = [];
  const plans: Partial<Plan>[] = [];
  /** The values of `fresh` that were there. */
  const ids = new Set<string>();
  const guard = (seen: SeenRequest, route: RouteName): Answer | undefined => {
    if (route === "openapi") return undefined;
    const fault = keyFault(facts.key, seen, key, now());
    if (fault) return fault;
    const { fresh } = facts;
    if (fresh) {
      const id = String(seen.headers[fresh.header]);
      if (!isUuid.test(id)) return facts.invalid(`the header ${fresh.header} is no UUID`);
      if (ids.has(id)) return fresh.again;
      ids.add(id);
    }
    const [header = "", value] = facts.constant ?? [];
    const isWanted = header !== "" && (route === "create" || facts.isForAll === true);
    if (isWanted && seen.headers[header] !== value) {
      return facts.invalid(`the header ${header} is missing`);
    }
    return undefined;
  };
  const origin = () => server.origin;
  const linkTo = (task: Task & Plan): string => {
    const isDead = task.deadLinks > 0;
    if (isDead) task.deadLinks -= 1;
    const url = files.add({ bytes: file, type });
    bornAt.set(new URL(url).pathname, now());
    if (isDead) files.remove(url);
    if (!facts.wantsKeyForFiles) return url;
    return `${origin()}${facts.base}/own/${new URL(url).pathname.slice("/files/".length)}`;
  };
  const advance = (task: Task & Plan): void => {
    if (task.state === "waiting") task.state = "running";
    else if (task.state === "running") {
      task.state = task.end;
      if (task.state === "done") task.url = linkTo(task);
    }
  };
  const begun = (seen: SeenRequest, way: string): Answer => {
    const input = seen.body as JsonObject;
    const fault = facts.faultOf?.(input, way);
    if (fault !== undefined) return facts.invalid(fault);
    const { most } = facts;
    const active = ordered.filter(({ state }) => most?.in.includes(state));
    if (most && active.length >= most.tasks) return most.answer;
    const ours = facts.ourId?.(input);
    if (isOther && ours !== undefined && tasks.has(ours) && facts.isTaken) return facts.isTaken;
    const id = facts.hasLongIds ? `${longIds + BigInt(ordered.length)}` : randomUUID();
    const task: Task & Plan = {
      ...{ id, way, input, state: "waiting", url: "", lookUrl: "" },
      ...{ ...usualPlan, ...planOf(input), ...plans.shift() },
    };
    task.lookUrl = `${(cluster ?? server).origin}/v1/get_result?id=${id}`;
    for (const known of [id, ...(ours === undefined ? [] : [ours])]) tasks.set(known, task);
    bornAt.set(task, now());
    ordered.push(task);
    if (!facts.isWithin) return reply(200, facts.created(task));
    Object.assign(task, { state: task.end, url: linkTo(task) });
    return facts.told(task, isOther);
  };
  const found = (task: (Task & Plan) | undefined, of: (task: Task) => Answer): Answer =>
    task ? of(task) : facts.missing;
  const idOf = (seen: SeenRequest, parts: string[]) => facts.idOf?.(seen, parts) ?? parts.at(-1);
  const look: Route<RouteName> = {
    ...{ name: "look", method: "GET", path: facts.look },
    answer: (seen, parts) =>
      found(tasks.get(idOf(seen, parts) ?? ""), (known) => {
        const task = known as Task & Plan;
        // A look under another way does not find the task.
        if (parts.length > 1 && parts[0] !== task.way) return facts.missing;
        if (isOver(task, facts.recordMs)) return facts.missing;
        if (task.state === "done" && facts.hasFreshLinks) task.url = linkTo(task);
        else if (task.pace === "looks") advance(task);
        return facts.told(task, isOther);
      }),
  };
  const routes: Route<RouteName>[] = [
    {
      ...{ name: "create", method: "POST", path: facts.create },
      answer: (seen, [way = ""]) => begun(seen, way),
    },
    hasCluster ? { ...look, answer: () => facts.missing } : look,
    ...Object.entries(facts.free ?? {}).map(([path, answer]) => freeRoute("free", path, answer)),
    ...(facts.openapi
      ? [freeRoute("openapi", facts.openapi.path, reply(200, facts.openapi.document))]
      : []),
    ...(facts.result ? [resultRoute(facts.result)] : []),
    ...(facts.cancel ? [cancelRoute(facts.cancel)] : []),
    {
      ...{ name: "own", method: "GET", path: /\/own\/(.+)$/ },
      answer: (_, [path = ""]) => replyText(302, "", { location: `${files.origin}/files/${path}` }),
    },
  ];

  function freeRoute(name: RouteName, path: string, answer: Answer): Route<RouteName> {
    return {
      name,
      method: "GET",
      path: new RegExp(`^${RegExp.escape(path)}$`),
      answer: () => answer,
    };
  }

  function resultRoute({ path, answer }: NonNullable<Facts["result"]>): Route<RouteName> {
    return {
      ...{ name: "result", method: "GET", path },
      answer: (seen, parts) => found(tasks.get(idOf(seen, parts) ?? ""), answer),
    };
  }

  function cancelRoute(cancel: NonNullable<Facts["cancel"]>): Route<RouteName> {
    const { method, path, deletes, answer } = cancel;
    return {
      ...{ name: "cancel", method, path },
      answer: (_, parts) =>
        found(tasks.get(parts.at(-1) ?? ""), (task) => {
          const isToCancel = cancel.in.includes(task.state);
          const isToDelete = deletes && !["waiting", "running", "cancelled"].includes(task.state);
          if (!isToCancel && !isToDelete) return facts.invalid("the task cannot be cancelled");
          if (isToCancel) task.state = "cancelled";
          if (isToDelete || deletes === "all") tasks.delete(task.id);
          return answer(task, isOther);
        }),
    };
  }

  const server: Double<RouteName> = await startDouble(routes, {
    ...{ guard, port },
    unknown: facts.missing as never,
  });
  const cluster = hasCluster ? await startDouble<RouteName>([look], { guard }) : undefined;
  return {
    ...{ name, key, facts, server, cluster, files, tasks: ordered },
    /** The bytes of the file that each task makes. */
    file,
    baseUrl: `${server.origin}${facts.base}`,
    /** Says how the next tasks go, one each. */
    plan: (...next: Partial<Plan>[]) => void plans.push(...next),
    /** Brings every held task one state on. */
    advance: () => ordered.forEach(advance),
    /** Ends every task. */
    finish: () =>
      ordered.forEach((task) => {
        advance(task);
        advance(task);
        task.pace = "looks";
      }),
    /** The tasks that the service charges: what was made, and what it still makes. */
    paid: () => ordered.filter(({ state }) => ["waiting", "running", "done"].includes(state)),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await cluster?.[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
    },
  };
}
