"""Signs and reads files with the C2PA's own library, for c2pa.test.ts.

`sign FOLDER` signs plain.png, plain.jpg and plain.mp4 there. `read FOLDER FILE...` prints what each file says, and whether that holds.
The folder has the authority's certificate in ca.pem, and the signer's with its key in chain.pem and key.pem.
"""

import json
import pathlib
import sys

import c2pa

folder = pathlib.Path(sys.argv[2])
authority = (folder / "ca.pem").read_text()
context = c2pa.Context.from_dict(
    {"verify": {"verify_trust": True}, "trust": {"trust_anchors": authority}}
)


def sign(suffix, mime_type):
    info = c2pa.C2paSignerInfo(
        alg=b"es256",
        sign_cert=(folder / "chain.pem").read_bytes(),
        private_key=(folder / "key.pem").read_bytes(),
        ta_url=None,
    )
    action = {
        "action": "c2pa.created",
        "digitalSourceType": "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia",
        "when": "2026-03-04T05:06:07Z",
    }
    manifest = {
        "claim_generator_info": [{"name": "someone else", "version": "7"}],
        "assertions": [{"label": "c2pa.actions", "data": {"actions": [action]}}],
    }
    plain, signed = folder / f"plain.{suffix}", folder / f"signed.{suffix}"
    with c2pa.Builder(manifest, context=context) as builder, c2pa.Signer.from_info(info) as signer:
        with plain.open("rb") as source, signed.open("w+b") as made:
            builder.sign(signer, mime_type, source, made)


def told(path):
    with c2pa.Reader(path, context=context) as reader:
        found = json.loads(reader.json())
    manifest = found["manifests"][found["active_manifest"]]
    labels = [one["label"] for one in manifest["assertions"]]
    actions = [
        action
        for one in manifest["assertions"]
        if one["label"].startswith("c2pa.actions")
        for action in one["data"]["actions"]
    ]
    generator = manifest["claim_generator_info"][0]
    return {
        "state": found["validation_state"],
        "generator": [generator["name"], generator.get("version")],
        "signer": manifest["signature_info"]["issuer"],
        "actions": [[one["action"], one["digitalSourceType"].split("/")[-1]] for one in actions],
        "when": [one.get("when") for one in actions],
        "labels": labels,
    }


if sys.argv[1] == "sign":
    for suffix, mime_type in (("png", "image/png"), ("jpg", "image/jpeg"), ("mp4", "video/mp4")):
        sign(suffix, mime_type)
else:
    print(json.dumps([told(str(folder / name)) for name in sys.argv[3:]]))
