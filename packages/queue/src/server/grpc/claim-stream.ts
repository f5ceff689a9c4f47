import type { JsonObject } from '@bufbuild/protobuf';
import type { QueueSchema } from '@millrace/contract/queue';
import { isClaimed } from '../../core/attempt-record.js';
import { claimTasks, handBackTasks } from '../../operations/claim-tasks.js';
import type { QueueContext } from '../../operations/context.js';
import { requireGrant, type Principal } from '../../operations/principal.js';
import { bodyOf, textIn } from './request-fields.js';

type ClaimedTask = QueueSchema<'ClaimResult'>['tasks'][number];

const maxWaitMs = 30_000;
const firstCheckMs = 1_000;
const maxCheckMs = 10_000;

export interface ClaimStream {
  request: JsonObject;
  remoteIp: string | null;
  /** Aborted when the call ends. */
  signal: AbortSignal;
  /** Resolves when more can be written; calls `sent` when the task has left this process. */
  write: (task: object, sent: () => void) => Promise<void>;
}

/** Streams tasks as they become available, at most `max_outstanding` unsettled ones. */
export async function streamTasks(
  context: QueueContext,
  caller: Principal,
  { request, remoteIp, signal, write }: ClaimStream,
): Promise<void> {
  const { max_outstanding: most = 1 } = request;
  const body = bodyOf(request, 'queue', 'max_outstanding');
  const queue = textIn(request, 'queue');
  requireGrant(caller, queue, 'worker');
  const { draining } = context.readiness;
  const outstanding = new Outstanding(context, [signal, draining]);
  const unsent = new Set<ClaimedTask>();
  try {
    while (!signal.aborted) {
      const limit = Number(most) - outstanding.count;
      if (limit <= 0 && outstanding.count > 0) {
        if (draining.aborted) return;
        await outstanding.fewer();
        continue;
      }
      const claim = { ...body, limit, wait_ms: maxWaitMs };
      const { tasks } = await claimTasks(context, caller, { queue, body: claim, remoteIp, signal });
      if (tasks.length === 0 && draining.aborted) return;
      for (const task of tasks) unsent.add(task);
      for (const task of tasks) {
        if (signal.aborted) break;
        outstanding.add(task);
        await write(task, () => unsent.delete(task));
      }
    }
  } finally {
    outstanding.close();
    // A graceful end still sends what was written.
    if (signal.aborted && unsent.size > 0) await handBackTasks(context, [...unsent]);
  }
}

/** The unsettled tasks of a stream. */
class Outstanding {
  /** Ids by lease token. */
  readonly #ids = new Map<string, string>();
  readonly #unsubscribe: () => void;
  #wake = () => {};

  constructor(
    private readonly context: QueueContext,
    /** Each ends the wait for a settlement. */
    private readonly ends: readonly AbortSignal[],
  ) {
    const wake = () => this.#wake();
    const unsubscribe = context.delivery.onPulledLeaseEnded((token) => {
      if (this.#ids.delete(token)) wake();
    });
    for (const signal of ends) signal.addEventListener('abort', wake);
    this.#unsubscribe = () => {
      unsubscribe();
      for (const signal of ends) signal.removeEventListener('abort', wake);
    };
  }

  get count(): number {
    return this.#ids.size;
  }

  add(task: { id: string; lease_token: string }): void {
    this.#ids.set(task.lease_token, task.id);
  }

  get #isOver(): boolean {
    return this.ends.some(({ aborted }) => aborted);
  }

  /** Resolves when there are fewer than now, the call has ended or the server shuts down. */
  async fewer(): Promise<void> {
    const { clock, store } = this.context;
    const before = this.count;
    const isShared = store.capabilities.isShared === true;
    for (let checkMs = firstCheckMs; ; checkMs = Math.min(2 * checkMs, maxCheckMs)) {
      if (this.#isOver || this.count < before) return;
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      // Tasks may be settled on another server, which does not report it here.
      const timer = isShared ? clock.after(checkMs, () => this.#wake()) : undefined;
      await woken;
      timer?.cancel();
      if (isShared && !this.#isOver && this.count === before) await this.#dropSettled();
    }
  }

  async #dropSettled(): Promise<void> {
    const { store } = this.context;
    await Promise.all(
      [...this.#ids].map(async ([token, id]) => {
        const task = await store.getTask(id);
        const isHeld = task && 'attempts' in task && isClaimed(task) && task.lease.token === token;
        if (!isHeld) this.#ids.delete(token);
      }),
    );
  }

  close(): void {
    this.#unsubscribe();
  }
}
