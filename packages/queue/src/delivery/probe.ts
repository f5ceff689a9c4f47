import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Outbound } from '@millrace/kit/outbound';
import type { Random } from '@millrace/kit/random';
import type { QueueComponents } from '@millrace/contract/queue';
import { outcomeOf, type Outcome } from '../core/outcome.js';
import type { Queue, SecretLookup } from '../core/queue.js';
import { traceOf } from '../core/callback-headers.js';
import {
  type CallbackParams,
  callbackRequest,
  type CallbackTask,
  type Credentials,
  credentialsOf,
} from './callback-request.js';
import type { GrpcHandlers } from './grpc-handlers.js';
import { newLeaseToken } from './queue-state.js';

export type ProbeResult = QueueComponents['schemas']['CallbackTestResult'];

export interface ProbeTools {
  clock: Clock;
  random: Random;
  outbound: Outbound;
  grpcHandlers?: GrpcHandlers | undefined;
  findSecret: SecretLookup;
}

/** Sends a request like that of a task and returns the result. Nothing is stored. */
export async function probe(queue: Queue, tools: ProbeTools): Promise<ProbeResult> {
  if (queue.config.callback.protocol === 'pull') {
    return notSent('Nothing was sent: this is a pull queue, which has no callback');
  }
  const found = credentialsOf(queue.name, queue.config.callback, tools.findSecret);
  if (!found.ok) return notSent(`Nothing was sent: ${found.reason}`);
  try {
    const { outcome, durationMs } = await send(queue, found.credentials, tools);
    const { httpStatus, errorType, message } = outcome;
    return {
      delivered: outcome.kind === 'succeeded' || outcome.kind === 'async',
      http_status: httpStatus,
      duration_ms: Math.max(0, Math.round(durationMs)),
      error_type: outcome.kind === 'interrupted' ? 'INTERNAL' : errorType,
      message,
    };
  } catch (error) {
    return notSent(messageOf(error));
  }
}

async function send(
  queue: Queue,
  credentials: Credentials,
  tools: ProbeTools,
): Promise<{ outcome: Outcome; durationMs: number }> {
  const [task, params] = probeTask(queue, credentials, tools);
  if (queue.config.callback.protocol === 'grpc') {
    if (!tools.grpcHandlers) throw new Error('This server makes no gRPC calls');
    return tools.grpcHandlers.execute(task, params);
  }
  const answer = await tools.outbound.request(callbackRequest(task, params));
  const outcome = outcomeOf(answer, queue.config.retry, tools.clock.now());
  return { outcome, durationMs: answer.durationMs };
}

function probeTask(
  queue: Queue,
  credentials: Credentials,
  { clock, random }: ProbeTools,
): [CallbackTask, CallbackParams] {
  const now = clock.now();
  const { config } = queue;
  const task = {
    id: random.ulid(now),
    queue: queue.name,
    handlerRef: 'queue.probe',
    payloadContentType: 'application/octet-stream',
    headers: {},
    attempt: 1,
    redriveCount: 0,
    payload: new Uint8Array(0),
  };
  const params = {
    leaseToken: null,
    trace: traceOf({}, newLeaseToken(random)),
    config,
    credentials,
    now,
    timeoutMs: config.callback.timeout_ms,
  };
  return [task, params];
}

function notSent(message: string): ProbeResult {
  return { delivered: false, http_status: null, duration_ms: 0, error_type: 'INTERNAL', message };
}
