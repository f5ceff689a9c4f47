import type { OutboundRequest, RequestSignal } from '@millrace/kit/outbound';
import { signatureOf } from '@millrace/kit/webhooks';
import { forwardHeaders } from '../../core/forwarded-headers.js';
import type { QueueConfig } from '../../core/queue.js';
import type { WholeTask } from '../../core/task.js';
import type { Trace } from '../../core/trace.js';
import type { Credentials } from './credentials.js';

/** The task that a callback carries. */
export type CallbackTask = Pick<
  WholeTask,
  | 'id'
  | 'queue'
  | 'handlerRef'
  | 'payloadContentType'
  | 'headers'
  | 'attempt'
  | 'redriveCount'
  | 'payload'
>;

export interface CallbackParams {
  /** Null for a probe. */
  leaseToken: string | null;
  trace: Trace;
  config: QueueConfig;
  credentials: Credentials;
  now: number;
  timeoutMs: number;
  signal?: RequestSignal;
}

/** The request that runs one attempt of a task. */
export function callbackRequest(task: CallbackTask, params: CallbackParams): OutboundRequest {
  const { callback } = params.config;
  if (callback.url === undefined) throw new Error('A pull queue has no callback');
  return {
    url: callback.url,
    method: 'POST',
    headers: callbackHeaders(task, params),
    body: task.payload,
    timeoutMs: params.timeoutMs,
    connectTimeoutMs: callback.connect_timeout_ms,
    signal: params.signal,
  };
}

/** What a callback says about its task, with credentials and signature. */
export function callbackHeaders(
  task: CallbackTask,
  params: CallbackParams,
): Record<string, string> {
  const { credentials, config, now } = params;
  const headers: Record<string, string> = {};
  forwardHeaders(task.headers, headers, credentials.auth?.lowerName);
  if (!params.trace.isContinued) dropTraceState(headers);
  headers['Content-Type'] = task.payloadContentType;
  headers['User-Agent'] = 'millrace-queue';
  headers['traceparent'] = params.trace.traceparent;
  headers['X-Queue-Name'] = task.queue;
  headers['X-Queue-Task-Id'] = task.id;
  headers['X-Queue-Handler-Ref'] = task.handlerRef;
  headers['X-Queue-Attempt'] = String(task.attempt);
  headers['X-Queue-Max-Attempts'] = String(config.retry.max_attempts);
  headers['X-Queue-Redrive-Count'] = String(task.redriveCount);
  headers['X-Queue-Deadline'] = new Date(now + params.timeoutMs).toISOString();
  if (params.leaseToken === null) headers['X-Queue-Probe'] = 'true';
  else headers['X-Queue-Lease-Token'] = params.leaseToken;
  if (credentials.auth) headers[credentials.auth.name] = credentials.auth.value;
  if (credentials.signingKeys.length > 0) sign(headers, task, params);
  return headers;
}

function sign(headers: Record<string, string>, task: CallbackTask, params: CallbackParams) {
  const timestampSeconds = Math.floor(params.now / 1000);
  const signed = { id: task.id, timestampSeconds, body: task.payload };
  headers['webhook-id'] = task.id;
  headers['webhook-timestamp'] = String(timestampSeconds);
  headers['webhook-signature'] = signatureOf(signed, params.credentials.signingKeys);
}

// W3C trace context: tracestate means nothing without its traceparent.
function dropTraceState(headers: Record<string, string>): void {
  for (const name of Object.keys(headers)) {
    if (name.length === 10 && name.toLowerCase() === 'tracestate') delete headers[name];
  }
}
