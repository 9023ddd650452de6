/** Ids of WebM's elements: what holds all, what holds the packets of some seconds, a packet with facts of it, the tracks, and one of them. */
const ebml = {
  ...{ segment: 0x18538067, cluster: 0x1f43b675, group: 0xa0 },
  ...{ tracks: 0x1654ae6b, track: 0xae },
};
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
 * The same file up to the end of its last whole block, where it is cut short: the library reads nothing of a cluster that says that it
 * goes on behind the file's end, so the last one's size is written anew. What is no WebM stays as it is. Uses up the bytes.
 */
export function wholeWebm<B extends Buffer>(view: B): B {
  let [cluster, group]: (Element | undefined)[] = [];
  let at = 0;
  while (at < view.length) {
    const element = elementAt(view, at);
    if (!element && view.length - at > maxHeadBytes) return view;
    if (!element) break;
    const { id, from, end } = element;
    if (id === ebml.cluster) cluster = element;
    if (id === ebml.group) group = element;
    const isOpened = id === ebml.segment || id === ebml.cluster || id === ebml.group;
    if (!isOpened && end === undefined) return view;
    const next = isOpened ? from : (end ?? view.length);
    if (next > view.length) break;
    at = next;
  }
  for (const cut of [cluster, group]) {
    if (cut?.end !== undefined && cut.end > at) writeSize(view, cut, at - cut.from);
  }
  return view.subarray(0, at) as B;
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

/** Tracks that a WebM describes. */
export function webmTracks(view: Buffer): number {
  let tracks = 0;
  for (const segment of elementsIn(view, 0, view.length, ebml.segment)) {
    if (segment.id !== ebml.segment) continue;
    for (const { id, from, end } of elementsIn(view, segment.from, segment.end, ebml.cluster)) {
      if (id !== ebml.tracks) continue;
      for (const one of elementsIn(view, from, end)) if (one.id === ebml.track) tracks++;
    }
  }
  return tracks;
}

/** Elements that stand behind each other, up to one of the id `last`. */
function* elementsIn(view: Buffer, from: number, end = view.length, last?: number) {
  const to = Math.min(view.length, end);
  for (let at = from; at < to; ) {
    const element = elementAt(view, at);
    if (!element) return;
    yield element;
    if (element.id === last) return;
    at = element.end ?? to;
  }
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
