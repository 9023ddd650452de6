"""What the official Python client builds of answers in the forms of other servers. Prints one JSON object; python.test.ts asserts it."""

import json
import sys

from openai import OpenAI

base_url, api_key, forms = sys.argv[1:4]
client = OpenAI(base_url=base_url, api_key=api_key, max_retries=0)


def in_chat(completion):
    choice = completion.choices[0]
    calls = [[c.function.name, c.function.arguments] for c in choice.message.tool_calls or []]
    return {"text": choice.message.content or "", "calls": calls, "finish": choice.finish_reason}


def in_response(response):
    calls = [[i.name, i.arguments] for i in response.output if i.type == "function_call"]
    return {"text": response.output_text, "calls": calls}


seen = {}
for name, model in json.loads(forms):
    asked = {"model": model, "messages": [{"role": "user", "content": name}]}
    with client.chat.completions.stream(**asked) as stream:
        stream.until_done()
        # What the helper built; its final completion is an error of its own where the model ran out of tokens.
        built = in_chat(stream.current_completion_snapshot)
    seen[name] = {"chat": in_chat(client.chat.completions.create(**asked)), "chat_stream": built}
    if model == "scripted":
        with client.responses.stream(model=model, input=name) as stream:
            stream.until_done()
            seen[name]["responses_stream"] = in_response(stream.get_final_response())
        response = client.responses.create(model=model, input=name)
        seen[name]["responses"] = in_response(response)

print(json.dumps(seen))
