import { hash } from 'node:crypto';
import { readTraceparent } from '@millrace/kit/tracing';
import { headerOf } from './forwarded-headers.js';

export interface Trace {
  traceId: string;
  traceparent: string;
  /** True if it continues the trace of the submitter. */
  isContinued: boolean;
}

/**
 * The W3C trace context of one attempt. It is derived from the task and its lease token, so that
 * another process can compute the same trace id after a crash.
 */
export function traceOf(headers: Readonly<Record<string, string>>, leaseToken: string): Trace {
  const digest = hash('sha256', leaseToken, 'hex');
  const span = digest.slice(32, 48);
  const given = headerOf(headers, 'traceparent');
  const parent = given === undefined ? undefined : readTraceparent(given);
  const traceId = parent?.traceId ?? digest.slice(0, 32);
  const traceparent = `00-${traceId}-${span}-${parent?.flags ?? '01'}`;
  return { traceId, traceparent, isContinued: parent !== undefined };
}
