import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { BodyForm } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { openSpeechStore } from "../../services/media/speech/context.ts";
import type { OpenWorldStores } from "../support/world-stores.ts";
import {
  alice,
  createSpeechWorld,
  hello,
  type SpeechProcess,
  type SpeechWorld,
} from "./speech.world.ts";

/** The rules for speech in formats other than MP3, on any stores. The shipped model has WAV and PCM. */
export function speechFormatsContract(openStores?: OpenWorldStores): void {
  let world: SpeechWorld;
  let media: SpeechProcess;

  beforeEach(async () => {
    world = await createSpeechWorld({ openStores });
    media = await world.openProcess();
    await media.speech.start();
  });
  afterEach(async () => {
    await media[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  const form = BodyForm.OPENAI;
  const asked = (response_format?: unknown) =>
    hello(response_format === undefined ? {} : { response_format });

  describe("the format of a speech", () => {
    test("is the model's, at the same price, and goes with the file", async () => {
      for (const [format, mimeType] of [
        [undefined, "audio/mpeg"],
        [null, "audio/mpeg"],
        ["mp3", "audio/mpeg"],
        ["wav", "audio/wav"],
        ["pcm", "audio/pcm"],
      ] as const) {
        const answer = await media.generate(asked(format), { form });
        expect(answer).toMatchObject({ audio: { mimeType }, costUsdMicros: 180n });
        expect(world.tasks.at(-1)?.format).toBe(format ?? "mp3");
        const name = { parentId: answer.speechId, fileId: answer.audio?.fileId ?? "" };
        expect(await media.speech.locate(name, alice)).toMatchObject({ mimeType });
      }
    });

    test.each([
      ["flac", ErrorReason.UNSUPPORTED_PARAMETER],
      ["tiff", ErrorReason.UNSUPPORTED_PARAMETER],
      ["", ErrorReason.UNSUPPORTED_PARAMETER],
      ["toString", ErrorReason.UNSUPPORTED_PARAMETER],
      [7, ErrorReason.INVALID_TYPE],
    ])("is refused before any money where the model has it not: %j", async (format, reason) => {
      const refused = media.generate(asked(format), { form });
      await expect(refused).rejects.toMatchObject({ reason, param: "response_format" });
      if (reason === ErrorReason.UNSUPPORTED_PARAMETER) {
        await expect(media.generate(asked(format), { form })).rejects.toThrow(
          "The model's formats are: mp3, wav, pcm.",
        );
      }
      expect(world.tasks).toEqual([]);
      expect(await world.money()).toMatchObject({ reserved: 0n, spent: 0n });
    });

    test("is MP3 on the API's own route, also where the body asks for another format", async () => {
      const answer = await media.generate(asked("wav"));
      expect(answer.audio?.mimeType).toBe("audio/mpeg");
      expect(world.tasks.at(-1)?.format).toBe("mp3");
    });

    test("is the same for a repeat, also after a restart, and another one is another request", async () => {
      const first = await media.generate(asked("wav"), { form, key: "k" });
      expect(await media.generate(asked("wav"), { form, key: "k" })).toEqual({
        ...first,
        replayed: true,
      });
      await media[Symbol.asyncDispose]();
      media = await world.openProcess();
      expect(await media.generate(asked("wav"), { form, key: "k" })).toEqual({
        ...first,
        replayed: true,
      });
      for (const other of [undefined, "mp3", "pcm", "flac"]) {
        await expect(media.generate(asked(other), { form, key: "k" })).rejects.toMatchObject({
          reason: ErrorReason.IDEMPOTENCY_KEY_REUSED,
        });
      }
      expect(world.tasks).toHaveLength(1);
      expect(await world.money()).toMatchObject({ spent: 180n });
    });

    test("is told to a media service of before by the fingerprint alone, which it refuses", async () => {
      const { store } = openSpeechStore(media.database);
      const fingerprintOf = async (format: string) => {
        const { speechId } = await media.generate(asked(format), { form, key: format });
        return (await store.find(speechId))?.idempotency?.fingerprint;
      };
      expect(await fingerprintOf("mp3")).toMatch(/^[\w+/=-]+$/);
      expect(await fingerprintOf("wav")).toMatch(/^[\w+/=-]+:wav$/);
    });
  });
}
