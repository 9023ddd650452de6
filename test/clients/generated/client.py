"""Calls every operation with a client that openapi-python-client makes from the description.

Run by typed-clients.test.ts, which makes the package genmesh_api. Prints each exchange as a line of JSON.
It is called with a base URL, an API key, and the files of an image and a sound.
"""

import importlib
import json
import pkgutil
import re
import sys
import typing

import genmesh_api.api
from genmesh_api import AuthenticatedClient
from genmesh_api.types import File

base_url, key, picture_file, sound_file = sys.argv[1:5]


def note(response):
    response.read()
    content_type = response.headers.get("content-type", "")
    is_text = "json" in content_type or "event-stream" in content_type
    exchange = {
        "method": response.request.method,
        "path": str(response.request.url)[len(base_url) :],
        "status": response.status_code,
        "contentType": content_type,
        "text": response.text if is_text else "",
    }
    print(json.dumps(exchange))


client = AuthenticatedClient(
    base_url=base_url,
    token=key,
    timeout=60,
    httpx_args={"event_hooks": {"response": [note]}},
)
operations = {
    module.name.rsplit(".", 1)[1]: module.name
    for module in pkgutil.walk_packages(genmesh_api.api.__path__, "genmesh_api.api.")
    if not module.ispkg
}


def call(name, body=None, refused=None, **rest):
    """Calls an operation. `refused`: the code of the error that it must answer with."""
    module = importlib.import_module(operations[name])
    if body is not None:
        wanted = typing.get_type_hints(module.sync_detailed, vars(module))["body"]
        model = [one for one in typing.get_args(wanted) or [wanted] if hasattr(one, "from_dict")][0]
        files = {n: v for n, v in body.items() if isinstance(v, File)}
        rest["body"] = model.from_dict({**body, **{n: b"" for n in files}})
        for field, value in files.items():
            setattr(rest["body"], field, value)
    answer = module.sync_detailed(client=client, **rest)
    code = json.loads(answer.content)["error"]["code"] if answer.status_code >= 400 else None
    assert code == refused, (name, answer.status_code, answer.content)
    return answer.parsed


def file_of(path, name):
    return File(payload=open(path, "rb"), file_name=name)


model = call("list_models").data[0]
assert model.pricing.output_usd_micros_per_million_tokens > 0
call("get_model", model=model.id)
assert call("get_billing").credits_.available > 0
for name in ["get_credits", "get_billing_alerts", "list_billing_entries", "list_billing_holds"]:
    call(name)
call("update_billing_alerts", {"lowBalanceUsdMicros": 1})
call("get_usage", start_time=1_700_000_000)
call("list_requests")
call("get_own_key")

made = call("create_key", {"name": "made"}).data
call("list_keys")
call("get_key", key_id=made.id)
call("update_key", {"name": "named"}, key_id=made.id)
call("rotate_key", {}, key_id=made.id)
call("delete_key", key_id=made.id)

text = {"model": "chat-1", "input": "Hello."}
response = call("create_response", text)
assert response.output[0].content[0].text != ""
assert response.usage.cost_usd_micros >= 0
call("get_generation", id=response.id)
call("count_input_tokens", text)
call("compact_conversation", text)
chat = {"model": "chat-1", "messages": [{"role": "user", "content": "Hello."}]}
assert call("create_chat_completion", chat).choices[0].message.content != ""
assert call("create_message", {**chat, "max_tokens": 50}).content[0].text != ""
call("count_message_tokens", chat)
call("create_embeddings", {"model": "scripted-vectors", "input": "Hello."})

spoken = {"model": "speech-1", "voice": "alloy", "input": "Hello."}
url = call("create_speech", spoken).audio.url
speech_id, file_id = re.search(r"generations/([^/]+)/files/([^/?]+)", url).groups()
assert call("download_speech", speech_id=speech_id, file_id=file_id) is not None
call("create_audio_speech", spoken)
call("create_transcription", {"model": "scripted-ears", "file": file_of(sound_file, "sound.mp3")})

kept = call("upload_file", {"purpose": "vision", "file": file_of(picture_file, "picture.png")})
call("list_files")
for name in ["get_file", "download_file", "delete_file"]:
    call(name, file_id=kept.id)

jobs = {
    "image": ("images", {"model": "small-image", "prompt": "A."}),
    "video": (
        "videos",
        {"model": "text-only", "prompt": "A.", "durationSeconds": 6, "resolution": "480p"},
    ),
    "music": ("clips", {"model": "music-1", "mode": "instrumental", "title": "A."}),
}
for kind, (outputs, body) in jobs.items():
    job = call(f"submit_{kind}_job", body)
    call("watch_job", job_id=job.id)
    job = call(f"get_{kind}_job", job_id=job.id)
    assert job.status == "completed", job
    call(f"download_{kind}", job_id=job.id, file_id=getattr(job, outputs)[0].id)
    call(f"cancel_{kind}_job", job_id=job.id, refused="job_not_cancellable")
    call(f"delete_{kind}_job", job_id=job.id)
call("list_jobs")
picture = file_of(picture_file, "picture.png")
call("edit_images", {"model": "scripted-image", "prompt": "A.", "image": picture})

call("list_webhooks")
call("get_webhook_secret")
call("rotate_webhook_secret")
call("retry_webhook", webhook_id="wh_0000000000000000000000", refused="webhook_not_found")
