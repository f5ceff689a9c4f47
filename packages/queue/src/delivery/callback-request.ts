import type { OutboundRequest } from '@millrace/kit/outbound';
import { signatureOf } from '@millrace/kit/webhooks';
import { forwardHeaders } from '../core/forwarded-headers.js';
import type { QueueConfig } from '../core/queue.js';
import type { Task } from '../core/task.js';
import type { Trace } from '../core/trace.js';
import type { Credentials } from './credentials.js';

/** What a callback says about the task that it carries. */
export interface CallbackSubject extends Pick<
  Task,
  'id' | 'queue' | 'handlerRef' | 'payloadContentType' | 'headers' | 'attempt' | 'redriveCount'
> {
  payload: Uint8Array;
  /** Null on a probe, which is no task. */
  leaseToken: string | null;
  trace: Trace;
}

export interface CallbackMeans {
  config: QueueConfig;
  credentials: Credentials;
  now: number;
  timeoutMs: number;
  signal: AbortSignal;
}

/** The request that runs one attempt of a task. */
export function callbackRequest(subject: CallbackSubject, means: CallbackMeans): OutboundRequest {
  const { callback } = means.config;
  return {
    url: callback.url,
    method: 'POST',
    headers: headersOf(subject, means),
    body: subject.payload,
    timeoutMs: means.timeoutMs,
    connectTimeoutMs: callback.connect_timeout_ms,
    signal: means.signal,
  };
}

function headersOf(subject: CallbackSubject, means: CallbackMeans): Record<string, string> {
  const { credentials, config, now } = means;
  const headers: Record<string, string> = {};
  forwardHeaders(subject.headers, headers, credentials.auth?.lowerName);
  if (!subject.trace.isContinued) dropTraceState(headers);
  headers['Content-Type'] = subject.payloadContentType;
  headers['User-Agent'] = 'millrace-queue';
  headers['traceparent'] = subject.trace.traceparent;
  headers['X-Queue-Name'] = subject.queue;
  headers['X-Queue-Task-Id'] = subject.id;
  headers['X-Queue-Handler-Ref'] = subject.handlerRef;
  headers['X-Queue-Attempt'] = String(subject.attempt);
  headers['X-Queue-Max-Attempts'] = String(config.retry.max_attempts);
  headers['X-Queue-Redrive-Count'] = String(subject.redriveCount);
  headers['X-Queue-Deadline'] = new Date(now + means.timeoutMs).toISOString();
  if (subject.leaseToken === null) headers['X-Queue-Probe'] = 'true';
  else headers['X-Queue-Lease-Token'] = subject.leaseToken;
  if (credentials.auth) headers[credentials.auth.name] = credentials.auth.value;
  if (credentials.signingKeys.length > 0) sign(headers, subject, means);
  return headers;
}

function sign(headers: Record<string, string>, subject: CallbackSubject, means: CallbackMeans) {
  const timestampSeconds = Math.floor(means.now / 1000);
  const signed = { id: subject.id, timestampSeconds, body: subject.payload };
  headers['webhook-id'] = subject.id;
  headers['webhook-timestamp'] = String(timestampSeconds);
  headers['webhook-signature'] = signatureOf(signed, means.credentials.signingKeys);
}

// W3C trace context: a state without the parent that it belongs to means nothing.
function dropTraceState(headers: Record<string, string>): void {
  for (const name of Object.keys(headers)) {
    if (name.length === 10 && name.toLowerCase() === 'tracestate') delete headers[name];
  }
}
