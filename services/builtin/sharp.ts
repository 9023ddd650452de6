import sharp from "sharp";

// A thread of ours is one core's work: libvips must not start threads of its own for every picture, nor keep pictures of
// other accounts in a cache.
sharp.concurrency(1);
sharp.cache(false);

export { sharp };
