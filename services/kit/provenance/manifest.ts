// Writes and signs the manifest that says how a file was made. `mark.ts` puts it into the file.

import { createHash, randomUUID } from "node:crypto";
import { box, hashedPart, labelledBox } from "./boxes.ts";
import { type Cbor, encodeCbor, mapOf, Tagged } from "./cbor.ts";
import type { Signer } from "./signer.ts";

/** The IPTC's names for media by what made them. */
const sourceTypes = {
  trained_model: "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia",
  /** Without anything learned. */
  algorithm: "http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia",
} as const;

/** The program that made a file. */
export interface Generator {
  name: string;
  version: string;
}

/** The way in which a manifest is bound to the bytes around it: the label of an assertion, and its content. */
export interface Binding {
  label: "c2pa.hash.data" | "c2pa.hash.bmff.v3";
  content: ReadonlyMap<string, Cbor>;
}

/** The facts of a made file: the program that says them, the time, and the kind of its source. */
export interface Mark {
  generator: Generator;
  madeAtMs: number;
  source: keyof typeof sourceTypes;
  signer: Signer;
}

/** A manifest that has all but its signature. Its length does not depend on the signature. */
export interface UnsignedManifest {
  lengthBytes: number;
  /** Signs it. Resolves with the whole store of manifests, which has this one alone. */
  sign(): Promise<Buffer>;
}

/**
 * Writes what a made file says of itself (C2PA 2.1, claims of version 2): how it was made, when, and who says so. It says nothing of a
 * caller.
 */
export function writeManifest(
  { generator: { name, version }, madeAtMs, source, signer }: Mark,
  binding: Binding,
): UnsignedManifest {
  const label = `urn:c2pa:${randomUUID()}`;
  const when = new Tagged(0, `${new Date(madeAtMs).toISOString().slice(0, 19)}Z`);
  const created = mapOf({
    ...{ action: "c2pa.created", when },
    digitalSourceType: sourceTypes[source],
  });
  const assertions = [
    assertion("c2pa.actions.v2", mapOf({ actions: [created] })),
    assertion(binding.label, binding.content),
  ];
  const claim = encodeCbor(
    mapOf({
      instanceID: `xmp:iid:${randomUUID()}`,
      claim_generator_info: mapOf({ name, version }),
      signature: `self#jumbf=/c2pa/${label}/c2pa.signature`,
      created_assertions: assertions.map(({ url, hash }) => mapOf({ url, hash })),
      alg: "sha256",
    }),
  );
  const store = (signature: Uint8Array) =>
    labelledBox(
      "c2pa",
      "c2pa",
      labelledBox(
        "c2ma",
        label,
        labelledBox("c2as", "c2pa.assertions", ...assertions.map(({ whole }) => whole)),
        labelledBox("c2cl", "c2pa.claim.v2", box("cbor", claim)),
        labelledBox("c2cs", "c2pa.signature", box("cbor", signed(signer, signature))),
      ),
    );
  return {
    lengthBytes: store(Buffer.alloc(signer.signatureBytes)).length,
    sign: async () => store(await signer.sign(toBeSigned(signer, claim))),
  };
}

function assertion(label: string, content: ReadonlyMap<string, Cbor>) {
  const whole = labelledBox("cbor", label, box("cbor", encodeCbor(content)));
  return {
    whole,
    url: `self#jumbf=c2pa.assertions/${label}`,
    hash: createHash("sha256").update(hashedPart(whole)).digest(),
  };
}

/** The algorithm, and the certificates. Labels 1 and 33 of COSE (RFC 9052, RFC 9360). */
function protectedHeader({ algorithm, certificates }: Signer): Buffer {
  return encodeCbor(
    new Map<number, Cbor>([
      [1, algorithm],
      [33, certificates],
    ]),
  );
}

function toBeSigned(signer: Signer, claim: Uint8Array): Buffer {
  return encodeCbor(["Signature1", protectedHeader(signer), Buffer.alloc(0), claim]);
}

/** A signature whose payload, the claim, lies elsewhere. */
function signed(signer: Signer, signature: Uint8Array): Buffer {
  return encodeCbor(new Tagged(18, [protectedHeader(signer), new Map(), null, signature]));
}
