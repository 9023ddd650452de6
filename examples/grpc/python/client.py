"""Makes an account, streams a text, makes an image, and writes it to fox.png."""

import json
import os
import sys
import urllib.request
import uuid

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gen"))

import grpc
from genmesh.auth.v1 import auth_service_pb2 as auth
from genmesh.auth.v1.auth_service_pb2_grpc import AuthServiceStub
from genmesh.billing.v1 import billing_service_pb2 as billing
from genmesh.billing.v1.billing_service_pb2_grpc import BillingServiceStub
from genmesh.media.v1 import media_service_pb2 as media
from genmesh.media.v1.media_service_pb2_grpc import MediaServiceStub
from genmesh.text.v1 import text_service_pb2 as text
from genmesh.text.v1.text_service_pb2_grpc import TextServiceStub
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

# In a mesh each service has an address of its own. One process has all of them here.
ADDRESS = os.environ.get("ADDRESS", "127.0.0.1:9090")
BASE_URL = os.environ.get("BASE_URL", "http://127.0.0.1:8080/v1")
ADMIN = [("authorization", "Bearer " + os.environ["GENMESH_ADMIN_TOKEN"])]
MESH = [("authorization", "Bearer " + os.environ["GENMESH_MESH_TOKEN"])]


def make_account(channel):
    """Answers the first key of a new account that has $1 and 100 credits, and the key's secret."""
    # A repeat with the same operation id changes nothing. So every call may be retried.
    run = uuid.uuid4().hex
    made = AuthServiceStub(channel).CreateAccount(
        auth.CreateAccountRequest(name="Example", operation_id=run), metadata=ADMIN, timeout=10
    )
    for unit, amount in [(billing.UNIT_USD_MICROS, 1_000_000), (billing.UNIT_CREDITS, 100)]:
        grant = billing.GrantRequest(
            account_id=made.account.account_id, unit=unit, amount=amount, operation_id=f"{run}-{unit}"
        )
        BillingServiceStub(channel).Grant(grant, metadata=ADMIN, timeout=10)
    return made.key, made.secret


def stream_text(channel, metadata):
    """Prints an answer while it comes."""
    request = text.StreamGenerateRequest(
        operation=text.OPERATION_RESPONSES,
        responses=text.ResponsesBody(model="chat-1", input="Why is the sky blue?", stream=True),
    )
    # Each message has whole events, as the public API sends them.
    for part in TextServiceStub(channel).StreamGenerate(request, metadata=metadata, timeout=60):
        for line in part.events.decode().splitlines():
            if line.startswith("data: {"):
                event = json.loads(line.removeprefix("data: "))
                if event["type"] == "response.output_text.delta":
                    print(event["delta"], end="", flush=True)
    print()


def make_image(channel, metadata):
    """Answers an image job once it has ended."""
    stub = MediaServiceStub(channel)
    request = media.SubmitJobRequest(
        kind=media.JOB_KIND_IMAGE,
        job=media.JobBody(model="image-1", prompt="a fox in the snow"),
        idempotency_key=str(uuid.uuid4()),
    )
    job = stub.SubmitJob(request, metadata=metadata, timeout=10).job
    watch = media.WatchJobRequest(job_id=job.job_id)
    for change in stub.WatchJob(watch, metadata=metadata, timeout=120):
        # A message without a job is a heartbeat.
        if change.HasField("job"):
            job = change.job
            print(media.JobStatus.Name(job.status), job.progress)
    if job.status != media.JOB_STATUS_COMPLETED:
        sys.exit(f"the job failed: {job.error.message}")
    return job


def download(job, secret):
    """The bytes of a job's first file. The public API has them, for the key that made the job."""
    url = f"{BASE_URL}/images/generations/{job.job_id}/files/{job.outputs[0].file_id}"
    request = urllib.request.Request(url, headers={"authorization": "Bearer " + secret})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def reason_of(error):
    """The name that a program decides by, and the values that belong to it."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else []:
        info = ErrorInfo()
        if detail.Unpack(info):
            return f"{info.reason} {dict(info.metadata)}"
    return f"{error.code().name} {error.details()}"


try:
    with grpc.insecure_channel(ADDRESS) as channel:
        key, secret = make_account(channel)
        # Calls on behalf of a key: the mesh token, and the key beside it.
        principal = [*MESH, ("genmesh-principal", f"{key.account_id}/{key.key_id}")]
        stream_text(channel, principal)
        job = make_image(channel, principal)
    image = download(job, secret)
    with open("fox.png", "wb") as file:
        file.write(image)
    print(f"fox.png: {len(image)} bytes, {job.credits_charged} credits")
except grpc.RpcError as error:
    sys.exit(reason_of(error))
