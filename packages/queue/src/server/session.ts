import { messageOf, Refusal } from '@millrace/kit/errors';
import type { RequestQueue } from '@millrace/wire/grpc';
import {
  decodeMessage,
  MessageWriter,
  type SentTask,
  type SessionAnswer,
  type SessionError,
  type SessionRequest,
  type SessionResponse,
} from '@millrace/worker';
import { type Principal, type QueueContext, requireGrant } from '../operations/base/context.js';
import type { Load } from '../operations/base/limits.js';
import { fail, problemOf } from '../operations/base/refusal.js';
import { claimTasks, type ClaimResult } from '../operations/claim-tasks.js';
import { type EventBatch, openEvents } from '../operations/events.js';
import { recordSteps } from '../operations/runs.js';
import { extendTask, settleTasks } from '../operations/settle.js';
import { maxItems as maxSubmits, submitBatch } from '../operations/submit.js';
import { StorageUnavailable } from '../storage/port/task-store.js';
import type { StreamedCall } from './grpc-calls.js';

export interface SessionStream extends StreamedCall {
  requests: RequestQueue;
  load: Load;
}

/** Calls without an answer, over which no more messages are read. */
const maxOpenCalls = 20_000;
const maxUnsentBytes = 4 * 2 ** 20;
const maxSettles = 100;
const maxEventStreams = 100;

/** Serves one session until its client is gone or the server shuts down. */
export async function serveSession(context: QueueContext, stream: SessionStream): Promise<void> {
  const session = new ServedSession(context, stream);
  try {
    await session.run();
  } finally {
    await session.close();
  }
}

type Part<Name extends keyof SessionRequest> = NonNullable<SessionRequest[Name]>[number];

class ServedSession {
  readonly #writer: MessageWriter<SessionResponse>;
  /** Leases of this session, by token: the ids of their tasks. */
  readonly #leases = new Map<string, string>();
  /** Calls that wait: claims, and those that opened streams of events. */
  readonly #claims = new Map<number, AbortController>();
  readonly #events = new Map<number, AsyncGenerator<EventBatch>>();
  readonly #remoteIp: string;
  readonly #stops: (() => void)[];
  #openCalls = 0;
  #wake: () => void = () => undefined;

  constructor(
    private readonly context: QueueContext,
    private readonly stream: SessionStream,
  ) {
    const { call, signal } = stream;
    this.#remoteIp = call.peer.replace(/:\d+$/, '');
    this.#writer = new MessageWriter<SessionResponse>(
      () => ({}),
      (message) => call.sendFramed(message),
    );
    call.onSent = () => this.#wake();
    const wake = () => this.#wake();
    const ends = [signal, context.readiness.draining];
    for (const end of ends) end.addEventListener('abort', wake);
    this.#stops = [
      () => ends.forEach((end) => end.removeEventListener('abort', wake)),
      context.store.onCancelled((id) => this.#cancelled(id)),
      context.delivery.onPulledLeaseEnded((token) => this.#leaseEnded(token)),
    ];
  }

  async run(): Promise<void> {
    const { call, requests, signal, load, identify } = this.stream;
    const { draining } = this.context.readiness;
    call.sendHeaders();
    const stopping = new Promise<undefined>((resolve) => {
      draining.addEventListener('abort', () => resolve(undefined));
    });
    while (!signal.aborted && !draining.aborted) {
      const bytes = await Promise.race([requests.next(), stopping]);
      if (!bytes) break;
      const caller = identify();
      load.enter(bytes.length);
      try {
        this.#handle(caller, readMessage(bytes));
      } finally {
        load.leave(bytes.length);
      }
      await this.#room();
    }
    // A client that ends, and one of a server that does, gets its answers first.
    for (const claim of this.#claims.values()) claim.abort();
    while (!signal.aborted && this.#openCalls > 0) await this.#woken();
    this.#writer.flush();
  }

  /** Tasks that were not settled are due again, unless the client can settle them elsewhere. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    for (const claim of this.#claims.values()) claim.abort();
    const isDraining = this.context.readiness.draining.aborted && !this.stream.signal.aborted;
    if (isDraining || this.#leases.size === 0) return;
    const claimed = Array.from(this.#leases, ([token, id]) => ({ id, token }));
    this.#leases.clear();
    await this.context.delivery.abandon(claimed);
  }

  get #isFull(): boolean {
    const { call, isMemoryFull } = this.stream;
    const isSlow = call.unsentBytes > maxUnsentBytes || call.isCongested || isMemoryFull();
    return isSlow || this.#openCalls > maxOpenCalls;
  }

  /** Resolves when the peer has read enough for more answers, or is gone. */
  async #room(): Promise<void> {
    const { signal, call } = this.stream;
    while (!signal.aborted && this.#isFull) {
      if (call.isCongested) call.whenDrained(() => this.#wake());
      await this.#woken();
    }
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      // Memory of other peers is freed without an event here.
      const timer = this.context.clock.after(1_000, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #handle(caller: Principal, { content, payloads }: ReturnType<typeof readMessage>): void {
    for (const call of content.drop ?? []) this.#claims.get(call)?.abort();
    // First, because they make room for what is claimed.
    for (const [queue, settles] of byQueue(content.settle, maxSettles)) {
      this.#run(settles, () => this.#settle(caller, queue, settles));
    }
    for (const [queue, submits] of byQueue(content.submit, maxSubmits)) {
      this.#run(submits, () => this.#submit(caller, queue, submits, payloads));
    }
    for (const claim of content.claim ?? []) this.#run([claim], () => this.#claim(caller, claim));
    for (const { call, ...record } of content.record ?? []) {
      this.#run([{ call }], async () => {
        this.#answer({ call, body: await recordSteps(this.context, caller, record) });
      });
    }
    for (const events of content.events ?? []) this.#run([events], () => this.#follow(events));
    for (const extend of content.extend ?? []) {
      this.#run([extend], () => this.#extend(caller, extend));
    }
  }

  /** Runs calls together, and refuses all of them if that fails. */
  #run(calls: readonly { call: number }[], run: () => Promise<void>): void {
    this.#openCalls += calls.length;
    const ended = () => {
      this.#openCalls -= calls.length;
      this.#wake();
    };
    run()
      .catch((error: unknown) => {
        const problem = this.#errorOf(error);
        for (const { call } of calls) this.#answer({ call, error: problem });
      })
      .finally(ended);
  }

  async #submit(
    caller: Principal,
    queue: string,
    submits: readonly Part<'submit'>[],
    payloads: readonly Uint8Array[],
  ): Promise<void> {
    requireGrant(caller, queue, 'submitter');
    this.stream.load.admit('new_work');
    const results = await submitBatch(this.context, caller, {
      queue,
      body: submits.map(({ task }) => task),
      payloads: submits.map(({ payload }) =>
        payload === undefined ? undefined : payloads[payload],
      ),
    });
    submits.forEach(({ call }, i) => {
      const result = results[i]!;
      if ('envelope' in result) {
        const { id, status } = result.envelope;
        this.#answer({ call, body: { id, status } });
      } else this.#answer({ call, error: { ...result.error, status: result.status } });
    });
  }

  async #settle(
    caller: Principal,
    queue: string,
    settles: readonly Part<'settle'>[],
  ): Promise<void> {
    requireGrant(caller, queue, 'worker');
    // The end of these leases is no news to the client.
    const held = settles.map(({ item }) => {
      const id = this.#leases.get(item.lease_token);
      this.#leases.delete(item.lease_token);
      return id;
    });
    try {
      const items = settles.map(({ item }) => item);
      const results = await settleTasks(this.context, { queue, body: { items } });
      settles.forEach(({ call }, i) => {
        const result = results[i]!;
        if ('error' in result) {
          this.#answer({ call, error: { ...result.error, status: result.status } });
        } else this.#answer({ call });
      });
    } catch (error) {
      settles.forEach(({ item }, i) => {
        const id = held[i];
        if (id !== undefined) this.#leases.set(item.lease_token, id);
      });
      throw error;
    }
  }

  async #claim(caller: Principal, { call, queue, request: body }: Part<'claim'>): Promise<void> {
    requireGrant(caller, queue, 'worker');
    const claim = new AbortController();
    const abort = () => claim.abort();
    const { signal } = this.stream;
    this.#claims.set(call, claim);
    signal.addEventListener('abort', abort);
    try {
      const isCongested = () => this.#isFull;
      const remoteIp = this.#remoteIp;
      const request = { queue, body, remoteIp, signal: claim.signal, isCongested, hasBytes: true };
      const { tasks } = await claimTasks(this.context, caller, request);
      if (signal.aborted) {
        await this.#abandon(tasks);
        return;
      }
      for (const { id, lease_token: token } of tasks) this.#leases.set(token, id);
      this.#writer.add((content, payloads) => {
        const sent = tasks.map((task): SentTask => ({
          ...task,
          payload: payloads.push(task.payload as Uint8Array) - 1,
        }));
        (content.answers ??= []).push({ call, body: { tasks: sent } });
      });
    } finally {
      signal.removeEventListener('abort', abort);
      this.#claims.delete(call);
    }
  }

  /** The client is gone before it got them. */
  #abandon(tasks: ClaimResult['tasks']): Promise<void> {
    return this.context.delivery.handBack(
      tasks.map(({ id, lease_token: token }) => ({ id, token })),
    );
  }

  async #extend(caller: Principal, { call, id, lease_token, body }: Part<'extend'>): Promise<void> {
    const request = { id, leaseToken: lease_token, body };
    const { lease_expires_at } = await extendTask(this.context, caller, request);
    this.#answer({ call, body: { lease_expires_at } });
  }

  /** Answers with the next batch of a stream; null if it is over. */
  async #follow({ call, query, of = call }: Part<'events'>): Promise<void> {
    if (query) await this.#openEvents(call, query);
    try {
      const next = await this.#events.get(of)?.next();
      this.#answer({ call, body: next?.value ?? null });
    } catch (error) {
      this.#claims.get(of)?.abort();
      throw error;
    }
  }

  async #openEvents(call: number, query: NonNullable<Part<'events'>['query']>): Promise<void> {
    if (this.#events.size >= maxEventStreams) {
      const detail = `A session has at most ${maxEventStreams} streams of events; close some.`;
      throw fail('RATE_LIMITED', detail, { retryAfterMs: 1_000 });
    }
    const end = new AbortController();
    this.#claims.set(call, end);
    const { identify } = this.stream;
    const open = openEvents(this.context, { ...query, identify, signal: end.signal });
    const batches = await open.catch((error: unknown) => {
      this.#claims.delete(call);
      throw error;
    });
    this.#events.set(call, batches);
    const over = () => {
      this.#claims.delete(call);
      this.#events.delete(call);
      // One that nobody waits for has its listeners still.
      void batches.return(undefined);
    };
    end.signal.addEventListener('abort', over);
    if (end.signal.aborted) over();
  }

  #answer(answer: SessionAnswer): void {
    this.#writer.add((content) => (content.answers ??= []).push(answer));
  }

  #cancelled(id: string): void {
    for (const [token, of] of this.#leases) {
      if (of !== id) continue;
      this.#leases.delete(token);
      this.#writer.add((content) => (content.cancelled ??= []).push(id));
    }
  }

  /** Not by this session, whose settlements take their leases away first. */
  #leaseEnded(token: string): void {
    const id = this.#leases.get(token);
    if (id === undefined) return;
    this.#leases.delete(token);
    this.#writer.add((content) => (content.lost ??= []).push(id));
  }

  #errorOf(error: unknown): SessionError {
    if (error instanceof Refusal) {
      const { retryAfterMs } = error.extra;
      return { ...problemOf(error), ...(retryAfterMs && { retry_after_ms: retryAfterMs }) };
    }
    if (error instanceof StorageUnavailable) {
      const detail = 'The task store does not respond; retry, a submit with the same id.';
      return problemOf(fail('STORAGE_UNAVAILABLE', detail));
    }
    this.context.log.error({ err: error }, `session call failed: ${messageOf(error)}`);
    return problemOf(fail('INTERNAL', 'Internal error'));
  }
}

/** Checks the form of a message; operations check what is in it. */
function readMessage(bytes: Buffer) {
  try {
    const message = decodeMessage<SessionRequest>(bytes);
    const { submit, settle, claim, extend, record, events, drop } = message.content;
    requireEntries(submit, { call: 'number', queue: 'string' });
    requireEntries(settle, { call: 'number', queue: 'string', item: 'object' });
    requireEntries(claim, { call: 'number', queue: 'string' });
    requireEntries(extend, { call: 'number', id: 'string', lease_token: 'string' });
    requireEntries(record, { call: 'number', id: 'string', body: 'object' });
    requireEntries(events, { call: 'number' });
    requireQueries(events);
    if (drop !== undefined && !Array.isArray(drop)) throw new TypeError('drop is no list');
    return message;
  } catch (error) {
    const detail = `The message is not a valid OpenRequest: ${messageOf(error)}.`;
    throw fail('INVALID_TASK', detail);
  }
}

function requireEntries(list: unknown, types: Readonly<Record<string, string>>): void {
  if (list === undefined) return;
  if (!Array.isArray(list)) throw new TypeError('there is no list where one should be');
  for (const entry of list as unknown[]) {
    for (const [name, type] of Object.entries(types)) {
      const value = (entry as Record<string, unknown> | null)?.[name];
      if (typeof value !== type || value === null) throw new TypeError(`${name} is no ${type}`);
    }
  }
}

function requireQueries(events: SessionRequest['events'] = []): void {
  const isText = (value: unknown) => value === undefined || typeof value === 'string';
  for (const { query: { cursor, queue, types = [] } = {} } of events) {
    if (isText(cursor) && isText(queue) && Array.isArray(types) && types.every(isText)) continue;
    throw new TypeError('query is no query of events');
  }
}

/** The calls of each queue, at most `maxCalls` together. */
function byQueue<Call extends { queue: string }>(
  calls: readonly Call[] | undefined,
  maxCalls: number,
): [queue: string, calls: Call[]][] {
  const groups: [string, Call[]][] = [];
  const open = new Map<string, Call[]>();
  for (const call of calls ?? []) {
    let group = open.get(call.queue);
    if (!group || group.length >= maxCalls) {
      group = [];
      open.set(call.queue, group);
      groups.push([call.queue, group]);
    }
    group.push(call);
  }
  return groups;
}
