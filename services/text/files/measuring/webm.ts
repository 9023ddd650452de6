/** Ids of WebM's elements: its start, what holds all, what holds the packets of some seconds, and a packet with facts of it. */
const ebml = { start: 0x1a45dfa3, segment: 0x18538067, cluster: 0x1f43b675, group: 0xa0 };
/** Bytes of an element's id and size at the most. */
const maxHeadBytes = 4 + 8;

/** An element of EBML. */
interface Element {
  id: number;
  /** Where its size is written, and where what it holds begins. */
  sizeAt: number;
  from: number;
  /** Where it says that it ends; undefined: it does not say so. */
  end: number | undefined;
}

/**
 * A WebM up to the end of its last whole block, as a recorder leaves it that was switched off: the library reads nothing of a cluster
 * that goes on behind the file's end, and looks for ever for what follows some elements that do. So the last cluster's size is written
 * anew. Other files stay as they are.
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

/** The element whose head stands whole at a place; undefined where none does. */
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
