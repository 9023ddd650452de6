import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useAction, useApi } from "../../hooks.ts";
import { DropArea } from "../../kit/drop.tsx";
import { Empty, ErrorText } from "../../kit/states.tsx";
import { Credits } from "../../kit/values.tsx";
import { may } from "../../session.ts";
import type { Model, ModelKind, Wallet } from "../../types.ts";
import { CopyAs } from "./copy-as.tsx";
import { submit, useMade } from "./made-jobs.ts";
import { MediaJob, useEnds } from "./media-job.tsx";
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
  children,
}: {
  model: Model;
  kind: ModelKind;
  settings: Settings;
  order: Order;
  onReference?: (fileId: string) => void;
  /** Takes files that the reader drops on the form, or pastes. */
  onFiles?: (files: File[]) => void;
  children: ComponentChildren;
}) {
  const wallet = useWallet();
  const jobs = useMade(kind);
  useEnds(jobs, wallet.reload);
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
            <ErrorText error={send.error} />
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
                        of <Credits value={spendable} /> that can be spent
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
          {jobs.length === 0 ? (
            <Empty title="Nothing made yet">
              <p>What you generate is shown here as it comes, with what it cost.</p>
            </Empty>
          ) : (
            jobs.map((one) => <MediaJob key={one.job.id} made={one} onReference={onReference} />)
          )}
        </div>
      </div>
      <CopyAs
        snippet={{ path: order.path, body: order.body }}
        link={linkTo(kind, model.id, settings)}
      />
    </>
  );
}
