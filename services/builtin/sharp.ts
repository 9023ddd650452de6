// Loads sharp with its settings for this process. All of this area imports it from here.

import sharp from "sharp";

// One thread is one core's work. So libvips must not start further threads for every image, nor cache images of other accounts.
sharp.concurrency(1);
sharp.cache(false);

export { sharp };
