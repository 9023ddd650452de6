import { useRef } from "preact/hooks";
import type { Picture } from "./chat-turns.ts";

/** The most images of `/responses`. */
const maxPictures = 20;
const pictureTypes = ["image/jpeg", "image/png"];

export function AddPictures({
  pictures,
  onPictures,
}: {
  pictures: Picture[];
  onPictures(pictures: Picture[]): void;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        disabled={pictures.length >= maxPictures}
        onClick={() => input.current?.click()}
      >
        Add images
      </button>
      <input
        ref={input}
        hidden
        type="file"
        multiple
        accept={pictureTypes.join()}
        aria-label="Images to add"
        onChange={async (event) => {
          const files = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          const fitting = files.filter((file) => pictureTypes.includes(file.type));
          const read = await Promise.all(fitting.map(pictureOf));
          onPictures([...pictures, ...read].slice(0, maxPictures));
        }}
      />
    </>
  );
}

async function pictureOf(file: File): Promise<Picture> {
  const reader = new FileReader();
  const dataUrl = await new Promise<string>((resolve, reject) => {
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return { name: file.name, dataUrl, blobUrl: URL.createObjectURL(file) };
}

export function Pictures({
  pictures,
  onPictures,
}: {
  pictures: Picture[];
  onPictures(pictures: Picture[]): void;
}) {
  return (
    <ul class="thumbs">
      {pictures.map((picture) => (
        <li key={picture.blobUrl}>
          <img src={picture.blobUrl} alt={picture.name} />
          <button
            type="button"
            class="small"
            aria-label={`Take out ${picture.name}`}
            onClick={() => {
              URL.revokeObjectURL(picture.blobUrl);
              onPictures(pictures.filter((one) => one !== picture));
            }}
          >
            Remove
          </button>
        </li>
      ))}
    </ul>
  );
}
