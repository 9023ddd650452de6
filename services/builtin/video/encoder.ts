// Encodes frames as H.264, by an encoder in WebAssembly, so that no program must be installed. `mux.ts` makes a file of it.

import hme from "h264-mp4-encoder";
import type { FrameSize } from "../paint/raster.ts";

/** Encodes frames as H.264. Only the compressed stream is kept. */
export type VideoEncoder = AsyncDisposable & {
  /** Takes one frame in planar YUV 4:2:0, BT.709 limited range. The caller may use the bytes again afterwards. */
  readonly add: (frame: Uint8Array) => void;
  /** Ends the stream and returns it as an MP4, which `mux` reads. */
  readonly finish: () => Uint8Array;
};

/** 10 is the encoder's fastest mode: three times as fast as 0 at the same size. */
const SPEED = 10;
/** Quality: 10 is best, 51 worst. At 26 no blocks are visible. Large frames tolerate a little more. */
const QUANTIZER = 26;
const LARGE_QUANTIZER = 28;
const LARGE_PIXELS = 1_000_000;
/** Seconds between two places where a player can begin. */
const KEY_FRAME_SECONDS = 3;

/** Starts a stream. Both sides must be even. */
export async function openVideoEncoder(
  size: FrameSize,
  framesPerSecond: number,
): Promise<VideoEncoder> {
  const encoder = await hme.createH264MP4Encoder();
  encoder.width = size.width;
  encoder.height = size.height;
  encoder.frameRate = framesPerSecond;
  encoder.speed = SPEED;
  const large = size.width * size.height > LARGE_PIXELS;
  encoder.quantizationParameter = large ? LARGE_QUANTIZER : QUANTIZER;
  encoder.groupOfPictures = framesPerSecond * KEY_FRAME_SECONDS;
  encoder.initialize();
  let open = true;
  const end = (): void => {
    if (open) encoder.finalize();
    open = false;
  };
  return {
    add: (frame) => encoder.addFrameYuv(frame),
    finish: () => {
      end();
      return encoder.FS.readFile(encoder.outputFilename);
    },
    [Symbol.asyncDispose]: async () => {
      // An encoder that is deleted before it is finalized breaks all others of its thread.
      end();
      // The file is in memory that all encoders of a thread share.
      encoder.FS.unlink(encoder.outputFilename);
      encoder.delete();
    },
  };
}
