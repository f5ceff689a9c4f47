"""Uses the queue over gRPC with Python's grpcio: as a client, a pull worker and a handler.

usage: use_queue.py DESCRIPTORS GRPC_ADDRESS HTTP_URL TOKEN HANDLER_PORT
Prints one line per check; exits 1 if one failed.
"""

import json
import sys
import threading
import time
import urllib.request
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

descriptors, address, http_url, token, handler_port = sys.argv[1:]

pool = descriptor_pool.DescriptorPool()
files = descriptor_pb2.FileDescriptorSet()
with open(descriptors, "rb") as file:
    files.ParseFromString(file.read())
for one in files.file:
    pool.Add(one)
factory = message_factory.MessageFactory(pool)


def message(name):
    return factory.GetPrototype(pool.FindMessageTypeByName(name))


Status = message("google.rpc.Status")
ErrorInfo = message("google.rpc.ErrorInfo")
ExecuteRequest = message("queue.v1.ExecuteRequest")
ExecuteResponse = message("queue.v1.ExecuteResponse")
service = pool.FindServiceByName("queue.v1.Queue")
metadata = [("authorization", "Bearer " + token)]
channel = grpc.insecure_channel(address)


def method(name):
    described = service.methods_by_name[name]
    request_type = factory.GetPrototype(described.input_type)
    make = channel.unary_stream if name == "Claim" else channel.unary_unary
    stub = make(
        "/queue.v1.Queue/" + name,
        request_serializer=request_type.SerializeToString,
        response_deserializer=factory.GetPrototype(described.output_type).FromString,
    )

    def call(headers=metadata, **fields):
        return stub(request_type(**fields), metadata=headers, timeout=30)

    return call


submit, get, listing = method("Submit"), method("GetTask"), method("ListTasks")
batch, cancel, stats = method("SubmitBatch"), method("CancelTask"), method("Stats")
claim, complete, fail = method("Claim"), method("Complete"), method("Fail")
extend = method("Extend")


def rest(verb, path, body=None):
    request = urllib.request.Request(
        http_url + path,
        method=verb,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": "Bearer " + token, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def refusal(call):
    """The status and the reason with which a call fails."""
    try:
        call()
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata())
        status = Status.FromString(trailers["grpc-status-details-bin"])
        info = ErrorInfo()
        assert status.details[0].Unpack(info), "the details have no ErrorInfo"
        return error.code().name, info.reason
    raise AssertionError("it succeeded")


def expect(actual, wanted):
    assert actual == wanted, f"{actual!r} is not {wanted!r}"


def until_ended(task_id):
    return get(id=task_id, wait_ms=20000)


def check_submit():
    task = submit(queue="pull", handler_ref="a", payload=b"\x00\xff", delay_ms=60000)
    expect(task.status, "PENDING")
    found = get(id=task.id)
    expect((found.payload, found.waiting_for), (b"\x00\xff", "time"))
    assert found.created_at.ToMilliseconds() > 0
    expect(cancel(id=task.id, reason="enough").dead_reason, "CANCELLED")
    expect(stats(queue="pull").pending, 0)


def check_list():
    tasks = [{"handler_ref": "list", "delay_ms": 60000} for _ in range(5)]
    results = batch(queue="pull", tasks=tasks).results
    expect([one.status for one in results], [202] * 5)
    page = listing(queue="pull", handler_ref="list", order="oldest", limit=3)
    rest_of = listing(
        queue="pull", handler_ref="list", order="oldest", limit=3, cursor=page.next_cursor
    )
    seen = [one.id for one in list(page.tasks) + list(rest_of.tasks)]
    expect(seen, [one.envelope.id for one in results])
    for one in seen:
        cancel(id=one)


def check_claim():
    ids = [submit(queue="pull", handler_ref="work").id for _ in range(3)]
    stream = claim(queue="pull", worker="python", max_outstanding=2)
    first, second = next(stream), next(stream)
    expect([first.id, second.id], ids[:2])
    extend(
        id=first.id,
        lease_token=first.lease_token,
        extend_ms=60000,
        progress={"percent": 50, "message": "half"},
    )
    complete(id=first.id, lease_token=first.lease_token, result=b'{"n": 1}')
    third = next(stream)
    expect(third.id, ids[2])
    done = get(id=first.id)
    expect((done.status, json.loads(done.result)), ("SUCCEEDED", {"n": 1}))
    expect((done.progress.percent, done.progress.message), (50, "half"))
    dead = fail(id=second.id, lease_token=second.lease_token, retry=False, message="no")
    expect((dead.status, dead.last_error.message), ("DEAD", "no"))
    cancel(id=third.id)
    lost = refusal(lambda: complete(id=third.id, lease_token=third.lease_token))
    expect(lost, ("FAILED_PRECONDITION", "LEASE_LOST"))
    stream.cancel()


def check_refusals():
    expect(
        refusal(lambda: stats(headers=[], queue="pull")), ("UNAUTHENTICATED", "UNAUTHENTICATED")
    )
    expect(refusal(lambda: stats(queue="none")), ("NOT_FOUND", "QUEUE_NOT_FOUND"))
    expect(
        refusal(lambda: submit(queue="pull", handler_ref="")), ("INVALID_ARGUMENT", "INVALID_TASK")
    )
    expect(refusal(lambda: next(claim(queue="push", worker="p"))), ("ABORTED", "QUEUE_NOT_PULL"))


received = []


def execute(request, context):
    received.append((request, dict(context.invocation_metadata())))
    ref = request.task.handler_ref
    if ref == "dead":
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "never")
    if ref == "retry" and request.task.attempt == 1:
        answer = ExecuteResponse()
        answer.status.code = grpc.StatusCode.UNAVAILABLE.value[0]
        answer.status.message = "later"
        answer.retry_after.FromMilliseconds(30)
        return answer
    if ref == "slow":
        stopped = threading.Event()
        context.add_callback(stopped.set)
        stopped.wait(20)
        cancelled.set()
    return ExecuteResponse(result=json.dumps({"bytes": len(request.payload)}).encode())


cancelled = threading.Event()


def start_handler():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    handler = grpc.unary_unary_rpc_method_handler(
        execute,
        request_deserializer=ExecuteRequest.FromString,
        response_serializer=ExecuteResponse.SerializeToString,
    )
    methods = {"Execute": handler}
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("queue.v1.Handler", methods),)
    )
    assert server.add_insecure_port("127.0.0.1:" + handler_port), "the port is in use"
    server.start()
    return server


def check_handler():
    payload = b"x" * 300000
    done = until_ended(submit(queue="push", handler_ref="ok", payload=payload).id)
    expect((done.status, json.loads(done.result)), ("SUCCEEDED", {"bytes": 300000}))
    request, headers = received[-1]
    expect((request.task.id, request.task.queue, request.task.attempt), (done.id, "push", 1))
    expect(headers["x-queue-task-id"], done.id)


def check_handler_status():
    retried = until_ended(submit(queue="push", handler_ref="retry").id)
    expect((retried.status, len(retried.attempts)), ("SUCCEEDED", 2))
    expect((retried.attempts[0].error_type, retried.attempts[0].retry_after_ms), ("UNAVAILABLE", 30))
    dead = until_ended(submit(queue="push", handler_ref="dead").id)
    expect((dead.status, dead.dead_reason), ("DEAD", "PERMANENT"))
    expect(dead.last_error.error_type, "INVALID_ARGUMENT")


def check_handler_cancel():
    task = submit(queue="push", handler_ref="slow")
    deadline = time.monotonic() + 20
    while get(id=task.id).status != "IN_FLIGHT" and time.monotonic() < deadline:
        time.sleep(0.02)
    while not any(one.task.id == task.id for one, _ in received) and time.monotonic() < deadline:
        time.sleep(0.02)
    cancel(id=task.id)
    assert cancelled.wait(20), "the call was not cancelled"


rest("PUT", "/v1/admin/queues/pull/config", {"callback": {"protocol": "pull"}})
callback = {
    "protocol": "grpc",
    "url": "grpc://127.0.0.1:" + handler_port,
    "keep_result": True,
}
retry = {"initial_backoff_ms": 10, "max_backoff_ms": 10}
rest("PUT", "/v1/admin/queues/push/config", {"callback": callback, "retry": retry})
server = start_handler()
failures = 0
checks = [
    check_submit,
    check_list,
    check_claim,
    check_refusals,
    check_handler,
    check_handler_status,
    check_handler_cancel,
]
for check in checks:
    name = check.__name__.removeprefix("check_")
    try:
        check()
        print(f"ok      {name}")
    except Exception as error:  # every check runs, whatever another does
        failures += 1
        print(f"FAILED  {name}: {type(error).__name__}: {error}")
server.stop(None)
channel.close()
sys.exit(1 if failures else 0)
