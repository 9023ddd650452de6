import { useRef, useState } from "preact/hooks";
import { call, queryOf } from "../api.ts";
import { bytes, count } from "../format.ts";
import { useAction, useApi, usePages } from "../hooks.ts";
import { FormDialog } from "../kit/dialog.tsx";
import { Page } from "../kit/page.tsx";
import { Empty, ErrorText, Waiting } from "../kit/states.tsx";
import { Pager } from "../kit/table.tsx";
import { toast } from "../kit/toast.tsx";
import { When } from "../kit/values.tsx";
import type { List } from "../types.ts";
import { contentOf, type StoredFile, uploadImage } from "./files-calls.ts";

/** Fills a grid of two to four columns. */
const pageSize = 24;

/** `quota`: absent from a service of before it. */
type Files = List<StoredFile> & {
  quota?: { usedBytes: number; limitBytes: number; files: number };
};

/** Images of the account: what jobs and messages refer to. */
export function Files() {
  const pages = usePages();
  const loaded = useApi<Files>(`/files${queryOf({ limit: pageSize, after: pages.after })}`);
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const [doomed, setDoomed] = useState<StoredFile | null>(null);
  const upload = useAction(async (chosen: File[]) => {
    try {
      for (const file of chosen) await uploadImage(file);
      toast(chosen.length === 1 ? "The file is here." : `${count(chosen.length)} files are here.`);
    } finally {
      // Those before the one that was refused are there.
      loaded.reload();
    }
  });
  const files = loaded.data?.data;
  const quota = loaded.data?.quota;
  return (
    <Page
      title="Files"
      lead="References of images and films: JPEG, PNG or WebP, 20 MiB each."
      actions={
        <button
          type="button"
          class="primary"
          disabled={upload.isBusy}
          onClick={() => input.current?.click()}
        >
          {upload.isBusy ? "Uploading…" : "Upload images"}
        </button>
      }
    >
      <input
        ref={input}
        hidden
        type="file"
        multiple
        accept="image/jpeg,image/png,image/webp"
        aria-label="Images to upload"
        onChange={(event) => {
          upload.run([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
      <div class="stack">
        {quota && (
          <div>
            <p class="fine muted">
              {bytes(quota.usedBytes)} of {bytes(quota.limitBytes)} used by {count(quota.files)}{" "}
              {quota.files === 1 ? "file" : "files"}
            </p>
            <meter
              min={0}
              max={quota.limitBytes}
              high={quota.limitBytes * 0.9}
              optimum={0}
              value={quota.usedBytes}
              aria-label="Room that is used"
            />
          </div>
        )}
        <ErrorText error={upload.error} />
        <ErrorText error={loaded.error} retry={loaded.reload} />
        {!files && !loaded.error && <Waiting lines={8} />}
        {/* biome-ignore lint/a11y/noStaticElementInteractions: dropping is a shortcut; the button above does the same by keyboard. */}
        <div
          class={isOver ? "drop is-over" : "drop"}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setOver(false);
            upload.run([...(event.dataTransfer?.files ?? [])]);
          }}
        >
          {files?.length === 0 && (
            <Empty title={pages.after ? "No more files" : "No files yet"}>
              <p>
                Upload an image, or drop it here. What jobs import by its address comes here too.
              </p>
            </Empty>
          )}
          <ul class="tiles">
            {files?.map((file) => (
              <Tile key={file.id} file={file} onDelete={() => setDoomed(file)} />
            ))}
          </ul>
        </div>
      </div>
      <Pager pages={pages} nextCursor={loaded.data?.has_more ? loaded.data.last_id : null} />
      {doomed && (
        <FormDialog
          title={`Delete ${doomed.filename}?`}
          submit="Delete for good"
          isDangerous
          onClose={() => setDoomed(null)}
          onSubmit={async () => {
            await call(`/files/${doomed.id}`, { method: "DELETE" });
            setDoomed(null);
            toast("The file is gone.");
            loaded.reload();
          }}
        >
          <p>No new job can refer to it. Jobs that have begun with it go on.</p>
        </FormDialog>
      )}
    </Page>
  );
}

function Tile({ file, onDelete }: { file: StoredFile; onDelete(): void }) {
  return (
    <li>
      <a href={contentOf(file.id)} target="_blank" rel="noopener">
        <img src={contentOf(file.id)} alt={file.filename} loading="lazy" />
      </a>
      <div>
        <p class="name" title={file.filename}>
          {file.filename}
        </p>
        <p class="fine muted">
          {file.width} × {file.height} · {bytes(file.bytes)}
        </p>
        <p class="fine muted">
          <When at={file.created_at} style="day" />
        </p>
      </div>
      <div class="row">
        <a class="button small" href={`/console/playground?kind=image#refs=${file.id}`}>
          Use as reference
        </a>
        <button
          type="button"
          class="small danger-text"
          aria-label={`Delete ${file.filename}`}
          onClick={onDelete}
        >
          Delete
        </button>
      </div>
    </li>
  );
}
