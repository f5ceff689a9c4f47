import {
  Metadata,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServerUnaryCall,
  type ServerWritableStream,
} from '@grpc/grpc-js';
import type { Clock } from '@millrace/kit/clock';
import { refuse } from '../../engine/refusal.js';
import type { Calls } from '../calls/calls.js';
import type { CallScope } from '../calls/scope.js';
import { stallMsOf } from '../limits/stalls.js';
import type { StreamingRpc, UnaryRpc } from '../service/call.js';
import type { DbMethod } from '@millrace/contract/db';
import { MethodCodec } from './codec.js';
import { grpcStatus } from './errors.js';
import { StreamSender } from './sender.js';

export interface HandlerParts {
  calls: Calls;
  clock: Clock;
  /** Only the owner of the socket can reach it: no key is asked for. */
  trusted: boolean;
}

type AnyCall = ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>;

export function unaryHandler(rpc: UnaryRpc, parts: HandlerParts): handleUnaryCall<Buffer, Buffer> {
  const { calls } = parts;
  const codec = new MethodCodec(rpc);
  const answer = async (scope: CallScope, call: AnyCall): Promise<Buffer> => {
    identify(parts, scope, call);
    return codec.encode(await calls.unary(scope, rpc, codec.decode(call.request)));
  };
  return (call, callback) => {
    const scope = openScope(parts, rpc, call);
    answer(scope, call).then(
      (bytes) => {
        calls.close(scope);
        callback(null, bytes);
      },
      (error: unknown) => {
        const status = calls.explain(scope, error);
        calls.close(scope, status);
        callback(grpcStatus(status));
      },
    );
  };
}

export function streamingHandler(
  rpc: StreamingRpc,
  parts: HandlerParts,
): handleServerStreamingCall<Buffer, Buffer> {
  const { calls, clock } = parts;
  const codec = new MethodCodec(rpc);
  const answer = async (scope: CallScope, call: ServerWritableStream<Buffer, Buffer>) => {
    identify(parts, scope, call);
    const { signal } = scope;
    await calls.stream(scope, rpc, codec.decode(call.request), async (messages) => {
      // A watch may have nothing to say for long: its caller hears that it stands.
      if (rpc === 'Watch') call.sendMetadata(new Metadata());
      const sender = new StreamSender({ call, clock, signal, stallMs: stallMsOf(rpc) });
      for await (const message of messages) await sender.send(codec.encode(message));
    });
  };
  return (call) => {
    const scope = openScope(parts, rpc, call);
    answer(scope, call).then(
      () => {
        calls.close(scope);
        call.end();
      },
      (error: unknown) => {
        const status = calls.explain(scope, error);
        calls.close(scope, status);
        if (!call.cancelled) call.emit('error', grpcStatus(status));
      },
    );
  };
}

function openScope({ calls, clock }: HandlerParts, rpc: DbMethod, call: AnyCall): CallScope {
  const given = call.getDeadline();
  const deadline = Number.isFinite(Number(given)) ? Number(given) : undefined;
  const scope = calls.open(rpc, 'grpc', call.getPeer(), deadline);
  call.on('cancelled', () => {
    // The library says so at the end of every call.
    if (scope.isOver) return;
    const isLate = deadline !== undefined && clock.now() >= deadline;
    scope.abort(
      isLate
        ? refuse('DEADLINE_EXCEEDED', 'The deadline of the call passed.')
        : refuse('CANCELLED', 'The caller gave the call up.'),
    );
  });
  return scope;
}

function identify({ calls, trusted }: HandlerParts, scope: CallScope, call: AnyCall): void {
  if (trusted) calls.trust();
  else {
    calls.identify(scope, {
      apiKey: textOf(call.metadata, 'x-api-key'),
      authorization: textOf(call.metadata, 'authorization'),
    });
  }
}

function textOf(metadata: Metadata, name: string): string | undefined {
  const [value] = metadata.get(name);
  return typeof value === 'string' ? value : undefined;
}
