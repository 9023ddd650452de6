"""What the official Python client sees. Prints one JSON object; python.test.ts asserts it."""

import base64
import json
import sys

import openai
from openai import OpenAI

base_url, api_key = sys.argv[1:3]
client = OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
model = "chat-1"
seen = {}

created = client.responses.create(model=model, input="say hello")
seen["create"] = created.output_text


def cost_of(usage):
    """What the client makes of two properties that it does not know: it hands them on."""
    return [usage.cost, usage.costUsdMicros]


costs = {"create": cost_of(created.usage)}

deltas = []
for event in client.responses.create(model=model, input="say good day", stream=True):
    if event.type == "response.output_text.delta":
        deltas.append(event.delta)
    last = event
seen["stream"] = ["".join(deltas), last.type]
costs["stream"] = cost_of(last.response.usage)

with client.responses.stream(model=model, input="Tell me of the sea.") as stream:
    text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
    seen["helper"] = text == stream.get_final_response().output_text and len(text) > 20

tools = [
    {
        "type": "function",
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    }
]
history = [{"role": "user", "content": "Weather in Paris?"}]
first = client.responses.create(model=model, input=history, tools=tools)
call = next(item for item in first.output if item.type == "function_call")
history += [item.model_dump(exclude_none=True) for item in first.output]
history.append({"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"})
second = client.responses.create(model=model, input=history, tools=tools)
seen["tool"] = [call.name, "city" in json.loads(call.arguments), "21 degrees" in second.output_text]

if hasattr(client.responses, "compact"):
    compacted = client.responses.compact(
        model=model, input=[{"role": "user", "content": "My cat is called Archimedes."}]
    )
    output = [item.model_dump(exclude_none=True) for item in compacted.output]
else:
    compacted = client.post(
        "/responses/compact",
        cast_to=object,
        body={"model": model, "input": "My cat is called Archimedes."},
    )
    output = compacted["output"]
following = client.responses.create(
    model=model, input=[*output, {"role": "user", "content": "And now?"}]
)
seen["compact"] = "Archimedes" in following.output_text

messages = [{"role": "user", "content": "say hello"}]
completion = client.chat.completions.create(model=model, messages=messages)
seen["chat"] = completion.choices[0].message.content
costs["chat"] = cost_of(completion.usage)

pieces, usage = [], None
for chunk in client.chat.completions.create(
    model=model, messages=messages, stream=True, stream_options={"include_usage": True}
):
    usage = chunk.usage or usage
    pieces += [choice.delta.content or "" for choice in chunk.choices]
seen["chat_stream"] = ["".join(pieces), usage.completion_tokens]
costs["chat_stream"] = cost_of(usage)
seen["costs"] = costs

seen["models"] = model in [one.id for one in client.models.list()]

errors = {}
for name, attempt in {
    "key": lambda: OpenAI(base_url=base_url, api_key="wrong", max_retries=0).models.list(),
    "model": lambda: client.responses.create(model="none", input="Hi"),
    "n": lambda: client.chat.completions.create(model=model, messages=messages, n=2),
}.items():
    try:
        attempt()
    except openai.APIStatusError as error:
        errors[name] = [type(error).__name__, error.status_code, error.code]
seen["errors"] = errors

pixel = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()
image = {"type": "input_image", "image_url": f"data:image/png;base64,{pixel}", "detail": "auto"}
seen["image"] = "PNG" in client.responses.create(
    model=model, input=[{"role": "user", "content": [image]}]
).output_text

print(json.dumps(seen))
