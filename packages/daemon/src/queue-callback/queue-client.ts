import { membersIn } from '@millrace/kit/errors';
import type { Outbound, OutboundResponse } from '@millrace/kit/outbound';
import type { Report } from './report.js';

export interface QueueClientParts {
  outbound: Outbound;
  url: string;
  token: string | undefined;
}

/** Outcome of a call. `lost`: the lease is no longer ours. `later`: retry. */
export type QueueAnswer =
  | { kind: 'ok'; leaseEndsAt: number | null }
  | { kind: 'lost' | 'refused'; why: string }
  | { kind: 'later'; why: string; afterMs: number };

interface Claim {
  taskId: string;
  leaseToken: string;
}

/** Client for completing, failing and extending tasks on the queue server. */
export class QueueClient {
  constructor(private readonly parts: QueueClientParts) {}

  async settle(claim: Claim, report: Report, signal: AbortSignal): Promise<QueueAnswer> {
    const { kind, ...body } = report;
    const answer = await this.#call(claim, kind, body, signal);
    // Version 0.1.0 of the queue takes no result.
    const isRepeated = answer.kind === 'refused' && 'result' in body;
    return isRepeated ? this.#call(claim, kind, {}, signal) : answer;
  }

  extend(
    claim: Claim,
    extendMs: number,
    signal: AbortSignal,
    progress?: string,
  ): Promise<QueueAnswer> {
    const body = {
      extend_ms: extendMs,
      ...(progress !== undefined && { progress: { message: progress } }),
    };
    return this.#call(claim, 'extend', body, signal);
  }

  async #call(
    { taskId, leaseToken }: Claim,
    act: 'complete' | 'fail' | 'extend',
    body: object,
    signal: AbortSignal,
  ): Promise<QueueAnswer> {
    const { outbound, url, token } = this.parts;
    const answer = await outbound.request({
      method: 'POST',
      url: `${url.replace(/\/+$/, '')}/v1/tasks/${encodeURIComponent(taskId)}:${act}`,
      headers: {
        'content-type': 'application/json',
        'x-queue-lease-token': leaseToken,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
      signal,
    });
    if (answer.ok) return this.#meaning(answer);
    return { kind: 'later', why: `${answer.errorType}: ${answer.message}`, afterMs: 0 };
  }

  #meaning({ status, headers, body }: OutboundResponse): QueueAnswer {
    // Without JSON only the status counts.
    const said = membersIn(Buffer.from(body).toString('utf8')) ?? {};
    if (status === 200) return { kind: 'ok', leaseEndsAt: timeIn(said['lease_expires_at']) };
    const code = String(said['code'] ?? '');
    const why = `HTTP ${status}${code && ` ${code}`}`;
    if (code === 'LEASE_LOST' || code === 'TASK_NOT_FOUND') return { kind: 'lost', why };
    // A wrong address or token may be corrected while the lease is valid, so these are retried.
    const isPassing = status >= 500 || [401, 403, 404, 408, 425, 429].includes(status);
    if (!isPassing) return { kind: 'refused', why };
    return { kind: 'later', why, afterMs: Number(headers['retry-after']) * 1000 || 0 };
  }
}

function timeIn(value: unknown): number | null {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}
