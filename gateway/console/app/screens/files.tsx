import { useRef, useState } from "preact/hooks";
import { call, queryOf } from "../api.ts";
import { bytes, count } from "../format.ts";
import { useAction, useApi, useFilters, usePages } from "../hooks.ts";
import { FormDialog } from "../kit/dialog.tsx";
import { DropArea } from "../kit/drop.tsx";
import { Page } from "../kit/page.tsx";
import { SearchField } from "../kit/search.tsx";
import { Empty, ErrorText, Waiting } from "../kit/states.tsx";
import { Pager } from "../kit/table.tsx";
import { toast } from "../kit/toast.tsx";
import { Fact, Id, ShortId, Status, When } from "../kit/values.tsx";
import type { List } from "../types.ts";
import { contentOf, type StoredFile, uploadImage } from "./files-calls.ts";
import { Origin } from "./origin.tsx";

/** Fills a grid of two to four columns. */
const pageSize = 24;

interface Quota {
  usedBytes: number;
  limitBytes: number;
  files: number;
}

/** A service of an earlier release answers without `quota`. */
type Files = List<StoredFile> & { quota?: Quota };

/** Images of the account that jobs and messages refer to. */
export function Files() {
  const { query, set } = useFilters();
  const { id } = query;
  const pages = usePages();
  const loaded = useApi<Files>(
    id ? null : `/files${queryOf({ limit: pageSize, after: pages.after })}`,
  );
  const input = useRef<HTMLInputElement>(null);
  const [doomed, setDoomed] = useState<StoredFile | null>(null);
  const upload = useAction(async (chosen: File[]) => {
    try {
      for (const file of chosen) await uploadImage(file);
      toast(chosen.length === 1 ? "The file is here." : `${count(chosen.length)} files are here.`);
    } finally {
      // The files before the refused one are stored.
      loaded.reload();
    }
  });
  const files = loaded.data?.data;
  const quota = loaded.data?.quota;
  return (
    <Page
      title="Files"
      lead="References of images and videos: JPEG, PNG or WebP, 20 MiB each."
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
      <ErrorText error={upload.error} />
      <SearchField
        label="Find by id"
        placeholder="file_…"
        value={id ?? ""}
        onSearch={(wanted) => set({ id: wanted })}
      />
      {id ? (
        <OneFile key={id} id={id} onDelete={setDoomed} />
      ) : (
        <>
          <div class="stack">
            {quota && <RoomUsed of={quota} />}
            <ErrorText error={loaded.error} retry={loaded.reload} />
            {!files && !loaded.error && <Waiting lines={8} />}
            <DropArea onFiles={upload.run}>
              {files?.length === 0 && (
                <Empty title={pages.after ? "No more files" : "No files yet"}>
                  <p>
                    Upload an image, drop it here, or paste it. Images that jobs import by their URL
                    are listed, too.
                  </p>
                </Empty>
              )}
              <ul class="tiles">
                {files?.map((file) => (
                  <Tile key={file.id} file={file} onDelete={() => setDoomed(file)} />
                ))}
              </ul>
            </DropArea>
          </div>
          <Pager pages={pages} nextCursor={loaded.data?.has_more ? loaded.data.last_id : null} />
        </>
      )}
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
            if (id) set({ id: undefined });
            else loaded.reload();
          }}
        >
          <p>No new job can refer to it. Jobs that have begun with it go on.</p>
        </FormDialog>
      )}
    </Page>
  );
}

function RoomUsed({ of: { usedBytes, limitBytes, files } }: { of: Quota }) {
  return (
    <div>
      <p class="fine muted">
        {bytes(usedBytes)} of {bytes(limitBytes)} used by {count(files)}{" "}
        {files === 1 ? "file" : "files"}
      </p>
      <meter
        min={0}
        max={limitBytes}
        high={limitBytes * 0.9}
        optimum={0}
        value={usedBytes}
        aria-label="Storage in use"
      />
    </div>
  );
}

/** One file, found by its id. */
function OneFile({ id, onDelete }: { id: string; onDelete(file: StoredFile): void }) {
  const { data: file, error } = useApi<StoredFile>(`/files/${encodeURIComponent(id)}`);
  return (
    <section class="card stack" aria-label="The file">
      <div class="row spread">
        <h2>
          <Id>{id}</Id>
        </h2>
        <a class="button small" href="/console/files">
          All files
        </a>
      </div>
      <ErrorText error={error} />
      {!file && !error && <Waiting lines={6} />}
      {file && (
        <div class="beside">
          <dl class="facts">
            <Fact name="Name">{file.filename}</Fact>
            <Fact name="Kind">{file.mimeType}</Fact>
            <Fact name="Size">
              {file.width} × {file.height} · {bytes(file.bytes)}
            </Fact>
            <Fact name="Status">
              <Status of="file" value={file.status} />
            </Fact>
            <Fact name="Stored">
              <When at={file.created_at} style="second" />
            </Fact>
          </dl>
          <a class="preview" href={contentOf(file.id)} target="_blank" rel="noopener">
            <img
              src={contentOf(file.id)}
              alt={file.filename}
              width={file.width}
              height={file.height}
            />
          </a>
        </div>
      )}
      {file && <Origin path={`/files/${encodeURIComponent(file.id)}`} />}
      {file && <Actions file={file} onDelete={() => onDelete(file)} />}
    </section>
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
        <p class="fine">
          <a href={`/console/files?id=${encodeURIComponent(file.id)}`}>
            <ShortId id={file.id} />
          </a>
        </p>
      </div>
      <Actions file={file} onDelete={onDelete} />
    </li>
  );
}

function Actions({ file, onDelete }: { file: StoredFile; onDelete(): void }) {
  return (
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
  );
}
