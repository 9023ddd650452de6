import { type CallOptions, call } from "../../api.ts";
import { count, milliseconds } from "../../format.ts";
import { useApi } from "../../hooks.ts";
import { Dialog } from "../../kit/dialog.tsx";
import { ErrorText, Notice, Waiting } from "../../kit/states.tsx";
import { admin, type UpstreamProbe } from "./types.ts";

/** Asks an upstream whether its key works and which models it has, and shows the answers. */
export function ProbeUpstream({ name, onClose }: { name: string; onClose(): void }) {
  const path = `${admin}/upstreams/${encodeURIComponent(name)}/probe`;
  const { data, error, isLoading, reload } = useApi<UpstreamProbe>(path, ask);
  return (
    <Dialog title={`Probe ${name}`} onClose={onClose} wide>
      <div class="stack">
        <p>A server asks it for its models with its key. Nothing is generated.</p>
        <ErrorText error={error} />
        {data && !isLoading && <Answers probe={data} />}
        {isLoading && <Waiting lines={4} />}
        <div class="dialog-actions">
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="button" class="primary" disabled={isLoading} onClick={reload}>
            Ask again
          </button>
        </div>
      </div>
    </Dialog>
  );
}

const ask = (path: string, options: CallOptions): Promise<UpstreamProbe> =>
  call(path, { ...options, method: "POST", body: {} });

function Answers({ probe: { list, models, faults, durationMs } }: { probe: UpstreamProbe }) {
  return (
    <div class="stack" role="status">
      <Notice tone={list?.fault || faults.length > 0 ? "warn" : "good"}>
        <strong>{headline(list, models, faults)}</strong>
        <p>It took {milliseconds(durationMs)}.</p>
      </Notice>
      {list && list.models.length > 0 && (
        <details>
          <summary>Models that it lists ({count(list.count)})</summary>
          <ul class="list">
            {list.models.map((model) => (
              <li key={model}>
                <code class="break">{model}</code>
              </li>
            ))}
          </ul>
          {list.count > list.models.length && (
            <p class="sub">Only {count(list.models.length)} of them are shown.</p>
          )}
        </details>
      )}
      {!list?.fault && faults.length > 0 && (
        <ul class="list">
          {faults.map(({ model, message }) => (
            <li key={model + message}>
              <code>{model}</code>
              <p>{message}</p>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function headline(
  list: UpstreamProbe["list"],
  models: number,
  faults: UpstreamProbe["faults"],
): string {
  if (list?.fault) return `The upstream could not be asked: ${list.fault}.`;
  if (faults.length > 0) return "It answers, and differs from the catalog.";
  const has = models === 1 ? "the model" : `all ${count(models)} models`;
  const served =
    models === 0 ? "No active model is served there." : `It has ${has} of the catalog there.`;
  return list ? `The key works. ${served}` : `It answers. ${served}`;
}
