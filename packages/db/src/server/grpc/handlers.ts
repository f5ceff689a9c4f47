import type { Message } from '@bufbuild/protobuf';
import type { DbMethod } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Calls } from '../calls/calls.js';
import type { CallScope } from '../calls/scope.js';
import { TurnQueue } from '../calls/turn-queue.js';
import { stallMsOf } from '../limits/stalls.js';
import type { Pollable, StreamingRpc, UnaryRpc } from '../service/call.js';
import { MethodCodec } from './codec.js';
import { grpcStatus } from './errors.js';
import { RecordPile } from './record-pile.js';
import { StreamSender } from './sender.js';
import { pushThrough } from './push.js';
import type { GrpcCall } from './transport/call.js';
import type { SingleMethod } from './transport/methods.js';

export interface HandlerParts {
  calls: Calls;
  clock: Clock;
  /** Only the owner of the socket can reach it: no key is asked for. */
  trusted: boolean;
}

/** A call whose request has arrived. */
interface ReadyCall {
  readonly call: GrpcCall;
  readonly scope: CallScope;
  readonly request: Buffer;
}

export function unaryMethod(rpc: UnaryRpc, parts: HandlerParts): SingleMethod {
  const { calls } = parts;
  const codec = new MethodCodec(rpc);
  const finish = ({ call, scope }: ReadyCall, answer: Message): void => {
    try {
      const bytes = codec.encode(answer);
      calls.close(scope);
      call.answer(bytes);
    } catch (error) {
      refuseCall(parts, scope, call, error);
    }
  };
  const begin = (ready: ReadyCall): void => {
    const { call, scope, request } = ready;
    const fail = (error: unknown) => refuseCall(parts, scope, call, error);
    try {
      identify(parts, scope, call);
      const answer = calls.unary(scope, rpc, codec.decode(request));
      if (!(answer instanceof Promise)) return finish(ready, answer);
      answer.then((later) => finish(ready, later), fail);
    } catch (error) {
      fail(error);
    }
  };
  const queue = new TurnQueue(begin);
  return {
    takes: 'one',
    start: (call, request) => queue.push({ call, scope: openScope(parts, rpc, call), request }),
  };
}

export function streamingMethod(rpc: StreamingRpc, parts: HandlerParts): SingleMethod {
  const { calls, clock } = parts;
  const codec = new MethodCodec(rpc);
  const frame = (message: Message) => codec.frame(message);
  const stallMs = stallMsOf(rpc);
  const answer = async ({ call, scope, request }: ReadyCall): Promise<void> => {
    try {
      identify(parts, scope, call);
      const { signal } = scope;
      scope.recordWriter = newPile;
      await calls.stream(scope, rpc, codec.decode(request), async (messages) => {
        // A watch may have nothing to say for long: its caller hears that it stands.
        if (rpc === 'Watch') call.outbox.sendHeaders();
        const sender = new StreamSender({ call, clock, signal, stallMs });
        pushThrough(sender, messages, frame);
        for await (const first of messages) {
          for (let next: Message | undefined = first; next; next = poll(messages)) {
            const taken = sender.sendFramed(codec.frame(next));
            if (taken) await taken;
          }
        }
      });
      calls.close(scope);
      call.end();
    } catch (error) {
      refuseCall(parts, scope, call, error);
    }
  };
  const queue = new TurnQueue<ReadyCall>((ready) => void answer(ready));
  return {
    takes: 'one',
    start: (call, request) => queue.push({ call, scope: openScope(parts, rpc, call), request }),
  };
}

const newPile = () => new RecordPile();

function poll(messages: object & Partial<Pollable<Message>>): Message | undefined {
  return messages.poll?.();
}

function openScope({ calls }: HandlerParts, rpc: DbMethod, call: GrpcCall): CallScope {
  const scope = calls.open(rpc, 'grpc', call.peer, call.deadline);
  call.work = scope;
  return scope;
}

function refuseCall({ calls }: HandlerParts, scope: CallScope, call: GrpcCall, error: unknown) {
  const status = calls.explain(scope, error);
  calls.close(scope, status);
  call.end(grpcStatus(status));
}

function identify({ calls, trusted }: HandlerParts, scope: CallScope, call: GrpcCall): void {
  if (trusted) return calls.trust();
  const { headers } = call;
  calls.identify(scope, {
    apiKey: firstOf(headers['x-api-key']),
    authorization: firstOf(headers.authorization),
  });
}

/** HTTP joins what is sent several times by commas. */
function firstOf(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value[0] : value;
  const comma = text?.indexOf(',') ?? -1;
  return comma === -1 ? text : text!.slice(0, comma).trim();
}
