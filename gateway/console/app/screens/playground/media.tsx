import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useAction, useApi } from "../../hooks.ts";
import { DropArea } from "../../kit/drop.tsx";
import { Empty, ErrorText, Waiting } from "../../kit/states.tsx";
import { toast } from "../../kit/toast.tsx";
import { Credits } from "../../kit/values.tsx";
import { may } from "../../session.ts";
import type { Model, ModelKind, Wallet } from "../../types.ts";
import { CopyAs } from "./copy-as.tsx";
import { Earlier, useEarlier } from "./earlier.tsx";
import { type Made, submit, useMade } from "./made-jobs.ts";
import { fileOf, MediaJob, useEnds } from "./media-job.tsx";
import { linkTo, type Settings } from "./settings.ts";
import type { Snippet } from "./snippets.ts";

/** The wallet, where the key may see it. */
export function useWallet() {
  return useApi<Wallet>(may("billing") ? "/billing" : null);
}

/** The request of a form for jobs. */
export interface Order {
  path: Extract<Snippet["path"], `${string}/generations`>;
  body: Record<string, unknown>;
  /** Undefined: the chosen options are not offered together. */
  credits: number | undefined;
  /** The missing field, in words. */
  missing?: string | undefined;
}

/**
 * A playground of jobs: the form with its price, beside its jobs. The form keeps the same Idempotency-Key until an answer has come. So
 * sending it again after a broken connection makes no second job.
 */
export function MediaPlayground({
  model,
  kind,
  settings,
  order,
  onReference,
  onFiles,
  onSettings,
  children,
}: {
  model: Model;
  kind: ModelKind;
  settings: Settings;
  order: Order;
  onReference?: (fileId: string) => void;
  /** Takes the settings of an earlier job. */
  onSettings?: (settings: Settings) => void;
  /** Takes files that the reader drops on the form, or pastes. */
  onFiles?: (files: File[]) => void;
  children: ComponentChildren;
}) {
  const wallet = useWallet();
  const jobs = useMade(kind);
  const { earlier, isLoading } = useEarlier(kind, jobs);
  useEnds(jobs, wallet.reload);
  const vary = useVary(settings, onSettings, onReference !== undefined);
  const attempt = useRef<{ text: string; id: string } | undefined>(undefined);
  const send = useAction(async () => {
    const text = JSON.stringify(order.body);
    if (attempt.current?.text !== text) attempt.current = { text, id: crypto.randomUUID() };
    await submit(order.path, order.body, settings, attempt.current.id);
    attempt.current = undefined;
    wallet.reload();
  });
  const spendable = wallet.data?.credits?.spendable;
  const isTooMuch = spendable !== undefined && (order.credits ?? 0) > spendable;
  return (
    <>
      <div class="play">
        <DropArea onFiles={(may("files") && onFiles) || null}>
          <form
            class="card"
            onSubmit={(event) => {
              event.preventDefault();
              send.run();
            }}
          >
            {children}
            <ErrorText error={send.error ?? vary.error} />
            <div class="pay">
              <p>
                {order.credits === undefined ? (
                  "Not on offer"
                ) : (
                  <>
                    <strong>
                      <Credits value={order.credits} /> credits
                    </strong>
                    {spendable !== undefined && (
                      <span class="sub">
                        of <Credits value={spendable} /> available
                      </span>
                    )}
                  </>
                )}
              </p>
              <button
                type="submit"
                class="primary"
                disabled={send.isBusy || order.credits === undefined || isTooMuch}
              >
                Generate
              </button>
            </div>
            {isTooMuch && <p class="field-error">There are not enough credits for this.</p>}
          </form>
        </DropArea>
        <div class="stack results" aria-live="polite">
          {isLoading && <Waiting lines={6} />}
          {!isLoading && jobs.length === 0 && earlier.length === 0 && (
            <Empty title="Nothing made yet">
              <p>Results appear here as they come, with their charge.</p>
            </Empty>
          )}
          {jobs.map((one) => (
            <MediaJob
              key={one.job.id}
              made={one}
              onReference={onReference}
              onVary={onSettings && vary.run}
            />
          ))}
          <Earlier earlier={earlier} onVary={onSettings && vary.run} />
        </div>
      </div>
      {/* Before the earlier jobs have come, their room is not known. */}
      {!isLoading && (
        <CopyAs
          snippet={{ path: order.path, body: order.body }}
          link={linkTo(kind, model.id, settings)}
        />
      )}
    </>
  );
}

/**
 * Fills the form with the settings of a job, to make others like one of its images: it is their reference where the model takes one. Where
 * the browser has not kept those settings, the form stays as it is.
 */
function useVary(
  present: Settings,
  onSettings: ((settings: Settings) => void) | undefined,
  takesReferences: boolean,
) {
  return useAction(async ({ job, settings }: Made, place: number) => {
    const refs = takesReferences && may("files") ? await fileOf(job, place) : "";
    const isKnown = Object.keys(settings).length > 0;
    onSettings?.({ ...(isKnown ? settings : present), refs, seed: "" });
    document.querySelector(".play")?.scrollIntoView({ block: "nearest" });
    if (refs) toast("The image is the reference of this form.");
    else toast(isKnown ? "The form has its settings." : "This browser does not have its settings.");
  });
}
