import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError } from "../../api.ts";
import { percent } from "../../format.ts";
import { useAction, useApi } from "../../hooks.ts";
import { Dialog } from "../../kit/dialog.tsx";
import { Field, Segments } from "../../kit/form.tsx";
import { ErrorText, Waiting } from "../../kit/states.tsx";
import { contentOf, type StoredFile, uploadImage } from "../files-calls.ts";
import { MaskCanvas } from "./mask-canvas.tsx";
import { maskFile } from "./mask-file.ts";
import type { Mark, Size } from "./mask-marks.ts";

/** Widths of the brush, in percent of the image's longer side. */
const widths = { least: 1, usual: 8, most: 40 };

/** Marks that are not a mask yet, with the image and the mask that they belong to. */
export interface MaskDraft {
  of: string;
  marks: readonly Mark[];
}

interface BrushProps {
  /** The id of the image's file. */
  image: string;
  /** The id of the mask's file to begin from. */
  mask: string | undefined;
  /** Marks that a closed dialog left, which the next one goes on from. */
  draft: { current: MaskDraft | undefined };
  /** The mask is a file of the account now. */
  onMask(id: string): void;
  onClose(): void;
}

/** A dialog in which the reader paints what may change of an image. */
export function MaskBrush(props: BrushProps) {
  const { data: size, error, reload } = useApi<StoredFile>(`/files/${props.image}`);
  return (
    <Dialog title="Paint what may change" full onClose={props.onClose}>
      <div class="stack">
        <ErrorText error={error} retry={reload} />
        {!size && !error && <Waiting lines={6} />}
        {size && <Painting {...props} size={size} />}
      </div>
    </Dialog>
  );
}

function Painting({ image, mask, draft, size, onMask, onClose }: BrushProps & { size: Size }) {
  const { marks, add, undo, open } = useMarks(mask, draft, `${image},${mask}`);
  const [tool, setTool] = useState("brush");
  const [width, setWidth] = useState(widths.usual);
  const [share, setShare] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const hint = useId();
  const isOpen = useRef(true);
  useEffect(
    () => () => {
      isOpen.current = false;
    },
    [],
  );
  const use = useAction(async () => {
    const file = await maskFile(marks, size);
    if (!isOpen.current) return;
    const { id } = await uploadImage(file, "mask.png");
    if (!isOpen.current) return;
    draft.current = undefined;
    onMask(id);
  });
  return (
    <>
      <div class="row">
        <Segments
          label="Tool"
          value={tool}
          onValue={setTool}
          choices={[
            { value: "brush", label: "Brush" },
            { value: "eraser", label: "Eraser" },
          ]}
        />
        <Field label="Brush size">
          {(tie) => (
            <input
              {...tie}
              type="range"
              // The dialog is in the form of the request, which Enter would send.
              form=""
              min={widths.least}
              max={widths.most}
              value={width}
              onInput={(event) => setWidth(event.currentTarget.valueAsNumber)}
            />
          )}
        </Field>
        <button type="button" class="small" disabled={marks.length === 0} onClick={undo}>
          Undo
        </button>
        <button
          type="button"
          class="small"
          disabled={share === 0}
          onClick={() => add({ kind: "clear" })}
        >
          Clear
        </button>
        <button type="button" class="small" onClick={() => input.current?.click()}>
          Open a mask
        </button>
        <input
          ref={input}
          hidden
          type="file"
          accept="image/png,image/webp"
          aria-label="Mask to open"
          onChange={(event) => {
            const [file] = event.currentTarget.files ?? [];
            if (file) open.run(file);
            event.currentTarget.value = "";
          }}
        />
      </div>
      <MaskCanvas
        {...{ image, size, marks }}
        tool={{
          erases: tool === "eraser",
          width: (Math.max(size.width, size.height) * width) / 100,
        }}
        describedBy={hint}
        onMark={add}
        onShare={setShare}
      />
      <p class="hint" id={hint}>
        By keyboard, the arrow keys move the brush, and Space lowers or lifts it. A mask that you
        open is transparent where the image may change.
      </p>
      <ErrorText error={open.error ?? use.error} />
      <div class="dialog-actions">
        <p class="fine muted facts-left" role="status">
          {share === 0
            ? "Nothing is painted."
            : `${percent.format(share)} of the image may change.`}
        </p>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class="primary"
          disabled={share === 0 || use.isBusy}
          onClick={() => use.run()}
        >
          {use.isBusy ? "Uploading…" : "Use this mask"}
        </button>
      </div>
    </>
  );
}

/** The marks so far, from an earlier mask on. Ctrl and Z undo the last mark, also that of a file. */
function useMarks(mask: string | undefined, draft: BrushProps["draft"], of: string) {
  const kept = useRef(draft.current?.of === of ? draft.current : undefined).current;
  const [marks, setMarks] = useState<readonly Mark[]>(kept?.marks ?? []);
  const add = (mark: Mark) => setMarks((before) => [...before, mark]);
  const undo = () => setMarks((before) => before.slice(0, -1));
  const open = useAction(async (file: Blob | Promise<Blob>) => {
    const image = await createImageBitmap(await file).catch(() => {
      throw new ApiError(0, { message: "The file of this mask is no image." }, null);
    });
    add({ kind: "file", image });
  });
  useEffect(() => {
    if (mask && !kept) open.run(fetch(contentOf(mask)).then((response) => response.blob()));
    const press = (event: KeyboardEvent) => {
      if (event.key !== "z" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      undo();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  // Not in an effect, which a key that closes the dialog may come before.
  draft.current = marks.length > 0 ? { of, marks } : undefined;
  return { marks, add, undo, open };
}
