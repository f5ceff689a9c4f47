import type { QueueSchema } from '@millrace/contract/queue';
import { pause } from './pause.js';
import { codeOf, ErrorReporter, type QueueTransport, type SettleItem } from './transport.js';

interface Entry {
  item: SettleItem;
  /** Retried until then. */
  leaseEnd: () => number;
  done: () => void;
}

const maxItems = 100;
const firstRetryMs = 100;
const maxRetryMs = 5_000;

/**
 * Settles tasks in batches: what ends while a call is under way goes into the next one, unless the
 * transport sends calls together anyway. A failed call is repeated until the leases end, which is
 * harmless.
 */
export class Settler {
  #waiting: Entry[] = [];
  #isSending = false;

  constructor(
    private readonly transport: QueueTransport,
    private readonly queue: string,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Resolves when the queue has the result, or never will. */
  settle(item: SettleItem, leaseEnd: () => number): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ item, leaseEnd, done });
      if (this.#isSending) return;
      this.#isSending = true;
      // Handlers that end in the same turn share a call.
      if (this.transport.batchesCalls) queueMicrotask(() => void this.#sendAll());
      else setTimeout(() => void this.#sendAll(), 0);
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, maxItems);
      const sent = this.#send(batch).then(() => batch.forEach(({ done }) => done()));
      // One that waits for another's answer would delay the parent of the task that ended first.
      if (!this.transport.batchesCalls) await sent;
    }
    this.#isSending = false;
  }

  async #send(batch: readonly Entry[]): Promise<void> {
    let left = batch;
    const errors = new ErrorReporter(this.onError);
    for (let retryMs = firstRetryMs; left.length > 0; retryMs = Math.min(retryMs * 2, maxRetryMs)) {
      try {
        const items = left.map(({ item }) => item);
        const results = await this.transport.settle(this.queue, items);
        left = left.flatMap((entry, i) => {
          const result = results[i];
          if (!result || !('error' in result)) return [];
          this.onError(itemError(result.error));
          return isRefused(entry, result.error.code) ? [failed(entry, result.error)] : [];
        });
      } catch (error) {
        const leastMs = errors.failed(error);
        if (codeOf(error) === 'FORBIDDEN' || codeOf(error) === 'INVALID_CLAIM') return;
        await pause(Math.max(leastMs, retryMs));
        const now = Date.now();
        left = left.filter(({ leaseEnd }) => leaseEnd() > now);
      }
    }
  }
}

const refusals = ['TOO_MANY_STEPS', 'STEP_TOO_LARGE', 'INVALID_CLAIM', 'RESULT_TOO_LARGE'];

/** Steps, results and waits that the queue never takes fail the task for good. */
function isRefused({ item }: Entry, code: string): boolean {
  return refusals.includes(code) && !refusals.includes(item.error_type ?? '');
}

function failed({ item, ...entry }: Entry, error: QueueSchema<'BatchItemError'>): Entry {
  const { id, lease_token } = item;
  const failure = { outcome: 'fail' as const, retry: false, error_type: error.code };
  return { ...entry, item: { id, lease_token, ...failure, message: error.detail ?? error.title } };
}

/** With the members of the refusal, such as `code` and the `reason` of a lost lease. */
function itemError(error: QueueSchema<'BatchItemError'>): Error {
  return Object.assign(new Error(error.detail ?? error.title), error);
}
