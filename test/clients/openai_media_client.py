"""What the official Python client sees of media. Prints one JSON object; python.test.ts asserts it."""

import base64
import json
import sys

import openai
from openai import OpenAI

try:
    import httpx2 as httpx
except ImportError:
    import httpx

base_url, api_key, picture = sys.argv[1:4]
client = OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
model = "scripted-image"
seen = {}


def magic(image):
    return base64.b64decode(image.b64_json)[1:4].decode()


answer = client.images.generate(model=model, prompt="a red boat", response_format="b64_json")
seen["generate"] = [magic(one) for one in answer.data]

waiting = OpenAI(
    base_url=base_url, api_key=api_key, max_retries=0, default_headers={"Prefer": "wait"}
)
seen["prefer"] = [magic(one) for one in waiting.images.generate(model=model, prompt="a", n=2).data]

url = client.images.generate(model=model, prompt="a", response_format="url").data[0].url
seen["url"] = [
    httpx.get(url, headers={"Authorization": f"Bearer {api_key}"}).status_code,
    httpx.get(url).status_code,
]

with open(picture, "rb") as image:
    seen["edit"] = [magic(one) for one in client.images.edit(model=model, prompt="a", image=image).data]
with open(picture, "rb") as one, open(picture, "rb") as two:
    edited = client.images.edit(model=model, prompt="a", image=[one, two], response_format="url")
    seen["edit_two"] = edited.data[0].url.startswith(base_url)

speech = {"model": "scripted-speech", "input": "Hi, you.", "voice": "alloy"}
seen["speech"] = len(client.audio.speech.create(**speech).content) > 100
with client.audio.speech.with_streaming_response.create(**speech) as streamed:
    seen["speech_streamed"] = sum(len(chunk) for chunk in streamed.iter_bytes()) > 100

spoken = {}
with client.audio.speech.with_streaming_response.create(**speech, stream_format="sse") as streamed:
    for line in streamed.iter_lines():
        if line.startswith("data: "):
            event = json.loads(line[len("data: ") :])
            spoken[event["type"]] = spoken.get(event["type"], 0) + len(
                base64.b64decode(event.get("audio", ""))
            )
seen["speech_events"] = [list(spoken), spoken["speech.audio.delta"] > 100]

wav = client.audio.speech.create(**speech, response_format="wav")
seen["speech_wav"] = [wav.content[:4].decode(), wav.response.headers["content-type"]]

seen["embeddings"] = (
    client.embeddings.create(model="scripted-vectors", input="Hi").data[0].embedding
)
heard = ("said.mp3", client.audio.speech.create(**speech).content)
seen["transcription"] = client.audio.transcriptions.create(model="scripted-ears", file=heard).text

errors = {}
for name, attempt in {
    "quality": lambda: waiting.images.generate(model=model, prompt="a", quality="hd"),
    "format": lambda: client.audio.speech.create(**speech, response_format="tiff"),
}.items():
    try:
        attempt()
    except openai.APIStatusError as error:
        errors[name] = [type(error).__name__, error.status_code, error.code]
seen["errors"] = errors


class LosesFirst(httpx.HTTPTransport):
    """Loses the first answer on its way, once it has begun."""

    asked = 0

    def handle_request(self, request):
        response = super().handle_request(request)
        self.asked += 1
        if self.asked > 1:
            return response
        response.close()
        raise httpx.ReadError("lost")


lossy = LosesFirst()
safe = OpenAI(
    base_url=base_url,
    api_key=api_key,
    max_retries=1,
    http_client=httpx.Client(transport=lossy),
)
# Under which header the client sends the key that it makes for a request and its retries.
safe._idempotency_header = "Idempotency-Key"
retried = safe.images.with_raw_response.generate(model=model, prompt="b", response_format="url")
seen["retried"] = [lossy.asked, retried.headers.get("idempotency-replayed")]

print(json.dumps(seen))
