// Follows a running task over ComfyUI's WebSocket, for its progress and its end. The driver also looks by HTTP, so this may fail.

import { isJsonObject, type JsonValue } from "#kit/base/json.ts";
import type { DriverContext } from "../media/context.ts";
import { urlOf } from "../media/exchange.ts";
import type { GenerationTask } from "../media/port.ts";
import { openSocket } from "../socket.ts";

/** A server's reports of a running task, where its WebSocket works. */
export interface Progress extends Disposable {
  /** Resolves when the server has reported that the task is over, or after `ms`. Rejects with the signal's reason. */
  overWithin(ms: number): Promise<void>;
}

/** Opens the WebSocket of the client that sends the task. Where it is refused or breaks, there are no reports. */
export async function openProgress(
  context: DriverContext,
  { upstream, signal, progress }: GenerationTask,
  { clientId, nodes }: { clientId: string; nodes: number },
): Promise<Progress> {
  let over = new AbortController();
  const share = createShare(nodes);
  const socket = await openSocket(context, {
    upstream,
    url: urlOf(upstream, `/ws?clientId=${clientId}`),
    signal,
    onText(text) {
      const { type, data } = parsed(text);
      if (!isJsonObject(data)) return;
      if (type === "executing" && data.node === null) return over.abort();
      const percent = share.after(type, data);
      if (percent !== undefined) progress(percent);
    },
  });
  return {
    async overWithin(ms) {
      await context.clock.sleep(ms, AbortSignal.any([signal, over.signal])).catch(() => {});
      signal.throwIfAborted();
      over = new AbortController();
    },
    [Symbol.dispose]: () => socket[Symbol.dispose](),
  };
}

function parsed(text: string): { type?: JsonValue; data?: JsonValue } {
  try {
    const message: unknown = JSON.parse(text);
    return isJsonObject(message) ? message : {};
  } catch {
    return {};
  }
}

/**
 * The finished share of a graph's work, in percent. A node counts as many steps as it reports, or one. Undefined until a node has
 * reported steps: loading and encoding are over at once, and sampling takes the time. Where a second sampler begins, the share falls,
 * but callers see the highest.
 */
export function createShare(nodes: number) {
  const steps = new Map<string, { value: number; max: number }>();
  const done = new Set<string>();
  let current: string | undefined;
  let hasSteps = false;
  return {
    after(type: JsonValue | undefined, data: { [name: string]: JsonValue }): number | undefined {
      if (type === "execution_cached" && Array.isArray(data.nodes)) {
        for (const node of data.nodes) done.add(String(node));
      } else if (type === "executing" && typeof data.node === "string") {
        if (current !== undefined && current !== data.node) done.add(current);
        current = data.node;
      } else if (type === "progress") {
        const [value, max] = [Number(data.value), Number(data.max)];
        if (!Number.isFinite(value) || !Number.isFinite(max) || max < 1) return undefined;
        const node = typeof data.node === "string" ? data.node : (current ?? "");
        steps.set(node, { value: Math.max(0, value), max });
        hasSteps ||= max > 1;
      } else return undefined;
      if (!hasSteps) return undefined;
      let all = Math.max(nodes, done.size);
      let made = done.size;
      for (const [node, { value, max }] of steps) {
        all += max - 1;
        made += done.has(node) ? max - 1 : Math.min(value, max);
      }
      return Math.min(99, Math.floor((100 * made) / all));
    },
  };
}
