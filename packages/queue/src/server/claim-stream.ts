import type { JsonObject } from '@bufbuild/protobuf';
import type { QueueSchema } from '@millrace/contract/queue';
import type { ServerCall } from '@millrace/wire/grpc';
import { isClaimed } from '../core/outcome.js';
import { claimTasks, handBackTasks } from '../operations/claim-tasks.js';
import { type QueueContext, requireGrant } from '../operations/base/context.js';
import { failBody, rateLimited } from '../operations/base/refusal.js';
import { bodyOf, queueIn, type StreamedCall } from './grpc-calls.js';

type ClaimedTask = QueueSchema<'ClaimResult'>['tasks'][number];

const maxWaitMs = 30_000;
const firstCheckMs = 1_000;
const maxCheckMs = 10_000;

export interface ClaimStream extends StreamedCall {
  request: JsonObject;
  encode: (task: ClaimedTask) => Uint8Array;
}

/** Streams tasks as they become available, at most `max_outstanding` unsettled ones. */
export async function streamTasks(context: QueueContext, stream: ClaimStream): Promise<void> {
  const { call, request, identify, signal, encode, isMemoryFull } = stream;
  const { max_outstanding: most = 1 } = request;
  const body = bodyOf(request, 'queue', 'max_outstanding');
  const queue = queueIn(request, 'INVALID_CLAIM');
  requireOutstanding(Number(most));
  const remoteIp = call.peer.replace(/:\d+$/, '');
  const { draining } = context.readiness;
  const outstanding = new Outstanding(context, [signal, draining]);
  const sender = new TaskSender(call, signal);
  const isCongested = () => call.isCongested || isMemoryFull();
  try {
    while (!signal.aborted) {
      await sender.room();
      if (isMemoryFull()) throw memoryFull();
      const limit = Number(most) - outstanding.count;
      if (limit <= 0 && outstanding.count > 0) {
        if (draining.aborted) return;
        await outstanding.fewer();
        continue;
      }
      const caller = identify();
      requireGrant(caller, queue, 'worker');
      const claim = { ...body, limit, wait_ms: maxWaitMs };
      const claimed = { queue, body: claim, remoteIp, signal, isCongested };
      const { tasks } = await claimTasks(context, caller, claimed);
      if (tasks.length === 0 && draining.aborted) return;
      for (const task of tasks) {
        outstanding.add(task);
        sender.send(task, encode(task));
      }
    }
  } finally {
    outstanding.close();
    // A graceful end still sends what was written.
    const { unsent } = sender;
    if (signal.aborted && unsent.length > 0) await handBackTasks(context, unsent);
  }
}

const maxOutstanding = 100;

function requireOutstanding(count: number): void {
  if (count >= 1 && count <= maxOutstanding) return;
  const message = `must be from 1 to ${maxOutstanding}`;
  throw failBody('INVALID_CLAIM', [{ pointer: '/max_outstanding', message }]);
}

function memoryFull(): Error {
  const detail = 'The server holds too many unread responses; claim again in a moment.';
  return rateLimited({ name: 'load', detail, retryAfterMs: 1_000 });
}

// Enough to keep the connection busy while the next tasks are claimed.
const maxUnsentBytes = 2 ** 20;
const prefixBytes = 5;

/** Sends tasks and keeps those that have not left this process. */
class TaskSender {
  /** Each with the number of bytes of the stream up to its end. */
  #unsent: { task: ClaimedTask; end: number }[] = [];
  #queuedBytes = 0;
  #wake = () => {};

  constructor(
    private readonly call: ServerCall,
    private readonly signal: AbortSignal,
  ) {
    call.onSent = () => {
      const sentBytes = this.#queuedBytes - call.unsentBytes;
      const first = this.#unsent.findIndex(({ end }) => end > sentBytes);
      this.#unsent = first === -1 ? [] : this.#unsent.slice(first);
      this.#wake();
    };
    signal.addEventListener('abort', () => this.#wake());
  }

  get unsent(): ClaimedTask[] {
    return this.#unsent.map(({ task }) => task);
  }

  send(task: ClaimedTask, message: Uint8Array): void {
    this.#queuedBytes += prefixBytes + message.length;
    this.#unsent.push({ task, end: this.#queuedBytes });
    this.call.send(message);
  }

  /** Resolves when the peer has read enough to get more, or has disconnected. */
  async room(): Promise<void> {
    const { call, signal } = this;
    while (!signal.aborted && (call.unsentBytes > maxUnsentBytes || call.isCongested)) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        // Other calls of the connection may hold it up.
        if (call.isCongested) call.whenDrained(resolve);
      });
    }
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
