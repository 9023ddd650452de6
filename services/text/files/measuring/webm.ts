// Repairs a WebM that was cut short while it was recorded, so that the library can read it.

/**
 * Ids of WebM's elements: its start, the element around all others, a group of packets of some seconds, and a packet with facts about
 * it.
 */
const ebml = { start: 0x1a45dfa3, segment: 0x18538067, cluster: 0x1f43b675, group: 0xa0 };
/** The most bytes of an element's id and size. */
const maxHeadBytes = 4 + 8;

/** An element of EBML. */
interface Element {
  id: number;
  /** The place of its size, and of the beginning of its content. */
  sizeAt: number;
  from: number;
  /** The place of its end, by its size. Undefined: it has no size. */
  end: number | undefined;
}

/**
 * A WebM up to the end of its last whole block. A recorder that was switched off leaves a file that is cut short. The library reads
 * nothing of a cluster that goes on behind the file's end. It looks for ever for the element behind some others that do. So a smaller
 * size is written into the last cluster. Other files stay unchanged.
 */
export function wholeWebm(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.length < maxHeadBytes || view.readUInt32BE(0) !== ebml.start) return bytes;
  let [cluster, group]: (Element | undefined)[] = [];
  let at = 0;
  while (at < view.length) {
    const element = elementAt(view, at);
    if (!element && view.length - at > maxHeadBytes) return bytes;
    if (!element) break;
    const { id, from, end } = element;
    if (id === ebml.cluster) cluster = element;
    if (id === ebml.group) group = element;
    const isOpened = id === ebml.segment || id === ebml.cluster || id === ebml.group;
    if (!isOpened && end === undefined) return bytes;
    const next = isOpened ? from : (end ?? view.length);
    if (next > view.length) break;
    at = next;
  }
  for (const cut of [cluster, group]) {
    if (cut?.end !== undefined && cut.end > at) writeSize(view, cut, at - cut.from);
  }
  return bytes.subarray(0, at);
}

/** Writes a smaller size into the same bytes. */
function writeSize(view: Buffer, { sizeAt, from }: Element, size: number): void {
  let left = size;
  for (let at = from - 1; at >= sizeAt; at--) {
    view[at] = left % 256;
    left = Math.floor(left / 256);
  }
  view[sizeAt] = (view[sizeAt] ?? 0) | (0x80 >>> (from - sizeAt - 1));
}

/** The element whose whole head is at a place. Undefined where there is none. */
function elementAt(view: Buffer, at: number): Element | undefined {
  const idBytes = Math.clz32((view[at] ?? 0) << 24) + 1;
  const sizeAt = at + idBytes;
  const sizeBytes = Math.clz32((view[sizeAt] ?? 0) << 24) + 1;
  const from = sizeAt + sizeBytes;
  if (idBytes > 4 || sizeBytes > 8 || from > view.length) return undefined;
  let size = (view[sizeAt] ?? 0) & (0xff >>> sizeBytes);
  let isUnknown = size === 0xff >>> sizeBytes;
  for (let i = sizeAt + 1; i < from; i++) {
    size = size * 256 + (view[i] ?? 0);
    isUnknown &&= view[i] === 0xff;
  }
  return {
    id: view.readUIntBE(at, idBytes),
    sizeAt,
    from,
    end: isUnknown ? undefined : from + size,
  };
}
