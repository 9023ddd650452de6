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
export type State = "waiting" | "running" | "done" | "refused" | "failed" | "cancelled";

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
  /** Does it delete the record of a task that has ended? */
  deletes?: boolean;
  answer(task: Task): Answer;
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
  told(task: Task): Answer;
  /** The answer for an id without a task. */
  missing: Answer;
  cancel?: Cancelling | undefined;
  /** One more request for the link of a task that is done. Its query names the id. */
  result?: { path: RegExp; answer(task: Task): Answer };
  /** The most tasks that wait or run, and the answer beyond. */
  most?: { tasks: number; answer: Answer };
  /** Does each look name a fresh link? Elsewhere the link of a task stays. */
  hasFreshLinks?: boolean;
  /** Is the file at the service's own origin, which wants the key and redirects elsewhere? */
  wantsKeyForFiles?: boolean;
  /** Are looks at a host of their own? The first host knows no task then. */
  hasCluster?: boolean;
  /** The answer to the request is the result. */
  isWithin?: boolean;
  /** Documented answers to a request that begins a task, by words. */
  answers: Readonly<Record<string, Answer>>;
}

type RouteName = "create" | "look" | "result" | "cancel" | "own";

/** The end of the next task, or of a number of them. */
export interface Plan {
  end: Extract<State, "done" | "refused" | "failed">;
  /** `looks`: each look finds the task further. `held`: the task waits for `advance` or `finish`. */
  pace: "looks" | "held";
  /** Links that have ended before they are named. */
  deadLinks: number;
}

/** The first of the integers above 2^53 that name tasks. */
const longIds = 9_223_372_036_854_770_000n;

const usualPlan: Plan = { end: "done", pace: "looks", deadLinks: 0 };

/** Settings of a double. */
export interface DeclaredOptions {
  port?: number;
  /** Its key. Default: a key of its own. */
  key?: string;
  /** Its time in milliseconds, for signed keys. */
  now?: () => number;
  outputs?: MediaOutputs;
  /** A service with looks at a host of their own has them at its first host. */
  isOneHost?: boolean;
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
  }: DeclaredOptions = {},
) {
  const facts: Facts = declaredFacts[name];
  const hasCluster = facts.hasCluster === true && !isOneHost;
  const made = outputs ?? (await sampleOutputs());
  const [file = new Uint8Array()] = bytesMade(facts.makes, 1, made);
  const type = typeOfBytes(file);
  const files = await startFiles(({ headers }) =>
    headers.authorization || headers["x-key"] || headers["x-goog-api-key"]
      ? reply(400, { error: "a store takes no key" })
      : undefined,
  );
  const tasks = new Map<string, Task & Plan>();
  const ordered: (Task & Plan)[] = [];
  const plans: Partial<Plan>[] = [];
  const guard = (seen: SeenRequest, route: RouteName): Answer | undefined => {
    const fault = keyFault(facts.key, seen, key, now());
    if (fault) return fault;
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
    if (isDead) files.remove(url);
    if (!facts.wantsKeyForFiles) return url;
    return `${origin()}${facts.base}/own/${new URL(url).pathname.slice("/files/".length)}`;
  };
  const advance = (task: Task & Plan): void => {
    if (task.state === "waiting") task.state = "running";
    else if (task.state === "running") task.state = task.end;
  };
  const begun = (seen: SeenRequest, way: string): Answer => {
    const input = seen.body as JsonObject;
    const fault = facts.faultOf?.(input, way);
    if (fault !== undefined) return facts.invalid(fault);
    const active = ordered.filter(({ state }) => state === "waiting" || state === "running");
    if (facts.most && active.length >= facts.most.tasks) return facts.most.answer;
    const id = facts.hasLongIds ? `${longIds + BigInt(ordered.length)}` : randomUUID();
    const task: Task & Plan = {
      ...{ id, way, input, state: "waiting", url: "", lookUrl: "" },
      ...{ ...usualPlan, ...plans.shift() },
    };
    task.lookUrl = `${(cluster ?? server).origin}/v1/get_result?id=${id}`;
    tasks.set(id, task);
    ordered.push(task);
    if (!facts.isWithin) return reply(200, facts.created(task));
    Object.assign(task, { state: task.end, url: linkTo(task) });
    return facts.told(task);
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
        if (task.pace === "looks") advance(task);
        const isNew = task.url === "" || facts.hasFreshLinks === true;
        if (task.state === "done" && isNew) task.url = linkTo(task);
        return facts.told(task);
      }),
  };
  const routes: Route<RouteName>[] = [
    {
      ...{ name: "create", method: "POST", path: facts.create },
      answer: (seen, [way = ""]) => begun(seen, way),
    },
    hasCluster ? { ...look, answer: () => facts.missing } : look,
    ...(facts.result ? [resultRoute(facts.result)] : []),
    ...(facts.cancel ? [cancelRoute(facts.cancel)] : []),
    {
      ...{ name: "own", method: "GET", path: /\/own\/(.+)$/ },
      answer: (_, [path = ""]) => replyText(302, "", { location: `${files.origin}/files/${path}` }),
    },
  ];

  function resultRoute({ path, answer }: NonNullable<Facts["result"]>): Route<RouteName> {
    return {
      ...{ name: "result", method: "GET", path },
      answer: (seen, parts) => found(tasks.get(idOf(seen, parts) ?? ""), answer),
    };
  }

  function cancelRoute(cancel: NonNullable<Facts["cancel"]>): Route<RouteName> {
    const { method, path, deletes = false, answer } = cancel;
    return {
      ...{ name: "cancel", method, path },
      answer: (_, parts) =>
        found(tasks.get(parts.at(-1) ?? ""), (task) => {
          if (cancel.in.includes(task.state)) task.state = "cancelled";
          else if (deletes && task.state !== "running") tasks.delete(task.id);
          else return facts.invalid("the task cannot be cancelled");
          return answer(task);
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
