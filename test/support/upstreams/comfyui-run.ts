import {
  type Graph,
  type NodeClass,
  nodeClasses,
  nodesBehind,
  signatureOf,
} from "./comfyui-nodes.ts";

/**
 * ComfyUI's execution of one graph: its messages over the WebSocket with their order, and its entry in the history.
 *
 * From Comfy-Org/ComfyUI: execution.py (`PromptExecutor.execute_async`, `execute`, `handle_execution_error`: messages and the cache),
 * comfy_execution/progress.py (`progress_state`), main.py (`hijack_progress`: `progress`, and the preview behind it). Results stay in the
 * cache until a restart, like in the default cache of newer versions.
 */
export interface Run {
  id: string;
  number: number;
  graph: Graph;
  /** Output nodes that passed validation. */
  outputs: string[];
  extra: Record<string, unknown>;
  clientId: string | undefined;
  plan: ComfyPlan;
}

/** The treatment of a prompt. */
export interface ComfyPlan {
  /** Does it run by itself, one step with each look, or only with `advance()`? */
  pace: "itself" | "looks" | "advance";
  /** Steps of each sampler. Default 4. */
  steps: number;
  /** Raised in the first node that samples or, without one, in the first that saves. */
  failure: { message: string; type: string } | undefined;
}

/** The server that runs a prompt. */
export interface Engine {
  /** Results by {@link signatureOf}. */
  cache: Map<string, object>;
  /** True once after an interrupt. At the beginning of a run the server forgets earlier ones. */
  takeInterrupt(): boolean;
  /** Writes the file of an output node, and gives its description. */
  save(run: Run, node: string, saves: NonNullable<NodeClass["saves"]>): object;
  /** Sends to one client, or to all where that is undefined. */
  send(event: string, data: object, client: string | undefined): void;
  sendPreview(run: Run, node: string): void;
}

/** The entry of a prompt in `/history`. */
export interface HistoryEntry {
  prompt: [number, string, Graph, object, string[]];
  outputs: Record<string, object>;
  meta: Record<string, object>;
  status: { status_str: "success" | "error"; completed: boolean; messages: [string, object][] };
}

/** Executes a prompt, a step at a time. */
export function* execute(run: Run, engine: Engine): Generator<void, HistoryEntry, void> {
  const { id, graph, plan, clientId } = run;
  const messages: [string, object][] = [];
  const outputs: Record<string, object> = {};
  const executed: string[] = [];
  const states: Record<string, object> = {};
  const about = { prompt_id: id };
  const say = (event: string, data: object) => {
    if (clientId !== undefined) engine.send(event, data, clientId);
  };
  const note = (event: string, data: object, toAll = false) => {
    const stamped = { ...data, timestamp: Date.now() };
    messages.push([event, stamped]);
    if (toAll && clientId === undefined) engine.send(event, stamped, undefined);
    else say(event, stamped);
  };
  const progress = (node: string, state: string, value: number, max: number) => {
    states[node] = {
      ...{ value, max, state, node_id: node, display_node_id: node, real_node_id: node },
      ...{ parent_node_id: null, ...about },
    };
    say("progress_state", { ...about, nodes: { ...states } });
  };
  const end = (status_str: "success" | "error"): HistoryEntry => ({
    prompt: [run.number, id, graph, run.extra, run.outputs],
    outputs,
    meta: Object.fromEntries(
      Object.keys(outputs).map((node) => [
        node,
        { node_id: node, display_node: node, parent_node: null, real_node_id: node },
      ]),
    ),
    status: { status_str, completed: status_str === "success", messages },
  });
  const nodeOf = (node: string) => ({
    node_id: node,
    node_type: graph[node]?.class_type,
    executed,
  });
  const interrupted = (node: string) => {
    note("execution_interrupted", { ...about, ...nodeOf(node) }, true);
    return end("error");
  };

  note("execution_start", about);
  const cached = Object.keys(graph).filter((node) => engine.cache.has(signatureOf(graph, node)));
  note("execution_cached", { nodes: cached, ...about });
  yield;
  for (const output of run.outputs) {
    const isCached = cached.includes(output);
    for (const node of isCached ? [output] : nodesBehind(graph, output)) {
      if (executed.includes(node)) continue;
      const { saves, samples } = nodeClasses[graph[node]?.class_type ?? ""] as NodeClass;
      if (cached.includes(node)) {
        if (!saves) continue;
        outputs[node] = engine.cache.get(signatureOf(graph, node)) as object;
        say("executed", { node, display_node: node, output: outputs[node], ...about });
        continue;
      }
      progress(node, "running", 0, 1);
      say("executing", { node, display_node: node, ...about });
      yield;
      if (engine.takeInterrupt()) return interrupted(node);
      const { failure } = plan;
      if (failure && (samples || saves)) {
        note("execution_error", {
          ...{ ...about, ...nodeOf(node), exception_message: `${failure.message}\n` },
          ...{
            exception_type: failure.type,
            traceback: [],
            current_inputs: {},
            current_outputs: [],
          },
        });
        return end("error");
      }
      for (let value = 1; samples && value <= plan.steps; value++) {
        progress(node, "running", value, plan.steps);
        say("progress", { value, max: plan.steps, ...about, node });
        engine.sendPreview(run, node);
        yield;
        if (engine.takeInterrupt()) return interrupted(node);
      }
      const made = saves ? engine.save(run, node, saves) : {};
      if (saves) {
        outputs[node] = made;
        say("executed", { node, display_node: node, output: made, ...about });
      }
      engine.cache.set(signatureOf(graph, node), made);
      progress(node, "finished", 1, 1);
      executed.push(node);
    }
  }
  note("execution_success", about);
  return end("success");
}
