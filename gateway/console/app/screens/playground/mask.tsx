import { useRef, useState } from "preact/hooks";
import { may } from "../../session.ts";
import type { Model } from "../../types.ts";
import { contentOf } from "../files-calls.ts";
import { MaskBrush, type MaskDraft } from "./mask-brush.tsx";
import { idsOf } from "./setting-values.ts";
import type { Form } from "./settings.ts";

/** The mask of a form with these references, by its file's id. It is that of the first one alone. Undefined: none. */
export function maskIdOf({ settings }: Form, model: Model, [image]: readonly string[]) {
  const [masked, mask] = idsOf(settings.mask);
  return model.masks && masked === image ? mask : undefined;
}

/** The form's field for a mask of the first reference, for models that take one. */
export function Mask({
  form,
  model,
  ids,
}: {
  form: Form;
  model: Model;
  /** The references. */
  ids: readonly string[];
}) {
  const [isOpen, setOpen] = useState(false);
  const draft = useRef<MaskDraft | undefined>(undefined);
  const [image] = ids;
  if (!model.masks || !image || !may("files")) return null;
  const mask = maskIdOf(form, model, ids);
  return (
    <fieldset class="field">
      <legend>Mask</legend>
      {mask && (
        <div class="thumbs masked">
          <img src={contentOf(image)} alt="Reference 1 under its mask" />
          <img src={contentOf(mask)} alt="" />
        </div>
      )}
      <div class="row">
        <button type="button" class="small" onClick={() => setOpen(true)}>
          {mask ? "Change the mask" : "Paint a mask"}
        </button>
        {mask && (
          <button type="button" class="small" onClick={() => form.set({ mask: "" })}>
            Remove the mask
          </button>
        )}
      </div>
      <p class="hint">
        {mask
          ? "What is dark stays as it is."
          : "Only what you paint on the first reference may change. Without a mask, all of it may."}
      </p>
      {isOpen && (
        <MaskBrush
          image={image}
          mask={mask}
          draft={draft}
          onClose={() => setOpen(false)}
          onMask={(id) => {
            form.set({ mask: `${image},${id}` });
            setOpen(false);
          }}
        />
      )}
    </fieldset>
  );
}
