// Starts a decoder process, hands it one image at a time, and kills it where it is late. `verifier.ts` decides how many there
// are. `decoder.ts` is the program that runs in it.

import { type ChildProcess, fork } from "node:child_process";
import { Socket } from "node:net";
import { decoderComplaintChars, decoderHeapMb } from "./limits.ts";
import {
  type DecodedImage,
  type DecodeRequest,
  type DecoderMessage,
  ImageError,
} from "./protocol.ts";

/** Options for starting a decoder process. */
type DecoderOptions = {
  readonly program: URL;
  readonly memoryMb: number;
  readonly startTimeoutMs: number;
  /** Milliseconds for one image, from the moment that the process has it. */
  readonly timeoutMs: number;
};

/** One process that decodes one image at a time. */
export type DecoderProcess = {
  /** False once the process died or was given up. It then takes no image. */
  isUsable(): boolean;
  /** Throws `ImageError`. After `timeout` and after a crash the process is given up. */
  decode(request: DecodeRequest): Promise<DecodedImage>;
  /** Kills the process. Resolves when it is gone. */
  stop(): Promise<void>;
};

type Ending = { readonly code: number | null; readonly signal: NodeJS.Signals | null };
type Word = DecoderMessage | { readonly type: "gone" } | { readonly type: "late" };

/** The parent's side: starts a decoder process. The parent process may exit while the decoder has no image. */
export function startDecoder(options: DecoderOptions): DecoderProcess {
  const child = fork(options.program, [String(options.memoryMb)], {
    execArgv: [`--max-old-space-size=${decoderHeapMb}`],
    // Images are sent to it as bytes and not as JSON.
    serialization: "advanced",
    // The process gets none of our environment. A hostile image that takes it over finds no key there.
    env: { MALLOC_ARENA_MAX: "2" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  const complaint = collectComplaint(child);
  const line = openLine(child);
  let isGivenUp = false;
  const giveUp = () => {
    isGivenUp = true;
    child.kill("SIGKILL");
  };
  // Events before the first image count as part of the start.
  const started = line.next(options.startTimeoutMs);
  const isUsable = () => !isGivenUp && line.ending() === undefined;

  return {
    isUsable,
    decode: async (request) => {
      hold(child, true);
      try {
        if ((await started).type !== "ready") {
          giveUp();
          throw new ImageError("unavailable", { cause: new Error(complaint()) });
        }
        if (!isUsable()) throw new ImageError("unavailable");
        const word = line.next(options.timeoutMs);
        child.send(request, (error) => error && line.hangUp());
        return conclude(await word, line.ending, giveUp);
      } finally {
        hold(child, false);
      }
    },
    stop: async () => {
      giveUp();
      hold(child, true);
      await line.ended;
    },
  };
}

function conclude(word: Word, ending: () => Ending | undefined, giveUp: () => void): DecodedImage {
  switch (word.type) {
    case "decoded":
      return word.image;
    case "refused":
      throw new ImageError(word.kind);
    case "late":
      giveUp();
      throw new ImageError("timeout");
    case "exhausted":
      giveUp();
      throw new ImageError("too_many_pixels");
    default: {
      giveUp();
      // A process that was killed from outside is not the image's fault. A crash of the decoder itself is.
      const signal = ending()?.signal ?? "SIGKILL";
      throw new ImageError(signal === "SIGKILL" ? "unavailable" : "corrupt");
    }
  }
}

/** Reads the next word of a process, its end included. At most one listener at a time. */
function openLine(child: ChildProcess) {
  let listener: ((word: Word) => void) | undefined;
  let ending: Ending | undefined;
  const ended = Promise.withResolvers<void>();
  const hear = (word: Word) => {
    const heard = listener;
    listener = undefined;
    heard?.(word);
  };
  const end = (how: Ending) => {
    ending ??= how;
    hear({ type: "gone" });
    ended.resolve();
  };
  child.on("message", (message) => hear(message as DecoderMessage));
  child.on("exit", (code, signal) => end({ code, signal }));
  // The process could not be started, or not be killed or written to. Only the first has no exit.
  child.on("error", () => child.pid === undefined && end({ code: null, signal: null }));
  return {
    ended: ended.promise,
    ending: () => ending,
    hangUp: () => hear({ type: "gone" }),
    next: (timeoutMs: number): Promise<Word> => {
      const { promise, resolve } = Promise.withResolvers<Word>();
      if (ending !== undefined) return Promise.resolve({ type: "gone" });
      const timer = setTimeout(hear, timeoutMs, { type: "late" });
      listener = (word) => {
        clearTimeout(timer);
        resolve(word);
      };
      return promise;
    },
  };
}

/** The end of the process's output on standard error. */
function collectComplaint(child: ChildProcess): () => string {
  let text = "";
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text = `${text}${chunk}`.slice(-decoderComplaintChars);
  });
  return () => text;
}

function hold(child: ChildProcess, isHeld: boolean): void {
  const how = isHeld ? "ref" : "unref";
  child[how]();
  child.channel?.[how]();
  if (child.stderr instanceof Socket) child.stderr[how]();
}
