// The field for reference images in the forms of jobs.

import { useRef, useState } from "preact/hooks";
import { useAction, useApi } from "../../hooks.ts";
import { Dialog } from "../../kit/dialog.tsx";
import { Empty, ErrorText, Waiting } from "../../kit/states.tsx";
import { may } from "../../session.ts";
import type { List } from "../../types.ts";
import { contentOf, type StoredFile, uploadImage } from "../files-calls.ts";

/** References of a form, and what adds to them. */
export interface ReferencesOf {
  ids: readonly string[];
  max: number;
  onIds(ids: string[]): void;
  upload: ReturnType<typeof useAction<[files: File[]]>>;
}

/** The references of a form: files of the account, of which the form has the ids. */
export function useReferences({ ids, max, onIds }: Omit<ReferencesOf, "upload">): ReferencesOf {
  // Others may be added or taken out while a file is uploaded.
  const present = useRef(ids);
  present.current = ids;
  const upload = useAction(async (files: File[]) => {
    const made: string[] = [];
    for (const file of files.slice(0, max - ids.length)) made.push((await uploadImage(file)).id);
    onIds([...present.current, ...made].slice(0, max));
  });
  return { ids, max, onIds, upload };
}

/** Images from which a job begins: uploaded here, dropped, pasted, or chosen from the account's files. */
export function References({
  of: { ids, max, onIds, upload },
  hint,
}: {
  of: ReferencesOf;
  hint: string;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [isChoosing, setChoosing] = useState(false);
  const isFull = ids.length >= max;
  if (!may("files")) return null;
  return (
    <fieldset class="field">
      <legend>References</legend>
      {ids.length > 0 && (
        <ul class="thumbs">
          {ids.map((id, place) => (
            <li key={id}>
              <img src={contentOf(id)} alt={`Reference ${place + 1}`} loading="lazy" />
              <button
                type="button"
                class="small"
                aria-label={`Take out reference ${place + 1}`}
                onClick={() => onIds(ids.filter((one) => one !== id))}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="row">
        <button
          type="button"
          class="small"
          disabled={isFull || upload.isBusy}
          onClick={() => input.current?.click()}
        >
          {upload.isBusy ? "Uploading…" : "Upload"}
        </button>
        <button type="button" class="small" disabled={isFull} onClick={() => setChoosing(true)}>
          Choose from files
        </button>
      </div>
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
      <p class="hint">{hint} Drop or paste them too.</p>
      <ErrorText error={upload.error} />
      {isChoosing && (
        <ChooseFile
          onClose={() => setChoosing(false)}
          onChosen={(id) => {
            setChoosing(false);
            if (!ids.includes(id)) onIds([...ids, id]);
          }}
        />
      )}
    </fieldset>
  );
}

/** The newest files to choose from. The screen of files has the older ones. */
const choices = 24;

function ChooseFile({ onClose, onChosen }: { onClose(): void; onChosen(id: string): void }) {
  const loaded = useApi<List<StoredFile>>(`/files?limit=${choices}`);
  const files = loaded.data?.data;
  return (
    <Dialog title="Choose a file" wide onClose={onClose}>
      <div class="stack">
        <ErrorText error={loaded.error} retry={loaded.reload} />
        {!files && !loaded.error && <Waiting />}
        {files?.length === 0 && (
          <Empty title="No files yet">
            <p>Upload an image; it is kept for the next time.</p>
          </Empty>
        )}
        <ul class="choose">
          {files?.map((file) => (
            <li key={file.id}>
              <button type="button" onClick={() => onChosen(file.id)}>
                <img src={contentOf(file.id)} alt="" loading="lazy" />
                <span>{file.filename}</span>
              </button>
            </li>
          ))}
        </ul>
        <div class="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </div>
    </Dialog>
  );
}
