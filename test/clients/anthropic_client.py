"""What the official Python client sees. Prints one JSON object; anthropic-python.test.ts asserts it."""

import json
import sys

import anthropic
from anthropic import Anthropic

base_url, api_key = sys.argv[1:3]
client = Anthropic(base_url=base_url, api_key=api_key, max_retries=0)
ask = {"model": "chat-1", "max_tokens": 1000, "messages": [{"role": "user", "content": "say hello"}]}
seen = {}

created = client.messages.create(**ask)
seen["create"] = [created.content[0].text, created.stop_reason, created.usage.output_tokens]

with client.messages.stream(**ask) as stream:
    text = "".join(stream.text_stream)
    seen["stream"] = [text, stream.get_final_message().stop_reason]

tools = [
    {
        "name": "get_weather",
        "input_schema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    }
]
history = [{"role": "user", "content": "Weather in Paris?"}]
first = client.messages.create(**{**ask, "messages": history}, tools=tools)
call = next(block for block in first.content if block.type == "tool_use")
history += [
    {"role": "assistant", "content": first.content},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"}],
    },
]
second = client.messages.create(**{**ask, "messages": history}, tools=tools)
seen["tool"] = [call.name, "city" in call.input, "21 degrees" in second.content[0].text]

counted = client.messages.count_tokens(model="chat-1", messages=ask["messages"])
seen["count"] = counted.input_tokens > 1
seen["models"] = "chat-1" in [model.id for model in client.models.list(limit=1000)]


def refusal(work):
    """The class, the status and the type of the error."""
    try:
        work()
    except anthropic.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.body["error"]["type"]]


wrong = Anthropic(base_url=base_url, api_key="wrong", max_retries=0)
seen["errors"] = {
    "key": refusal(lambda: wrong.messages.create(**ask)),
    "model": refusal(lambda: client.messages.create(**{**ask, "model": "none"})),
    "bound": refusal(lambda: client.messages.create(**{**ask, "max_tokens": 0})),
}
print(json.dumps(seen))
