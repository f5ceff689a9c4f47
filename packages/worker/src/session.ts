import { ApiError, newUlid, type ClientOptions } from '@millrace/client';
import type { CallError, Channel, DuplexCall } from '@millrace/wire/grpc-client';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { resumedEvents, type EventBatch, type EventQuery } from './events.js';
import { pause } from './pause.js';
import {
  decodeMessage,
  MessageWriter,
  sessionPath,
  sessionUpgrade,
  type SentTask,
  type SessionRequest,
  type SessionResponse,
} from './session-messages.js';

import type { ClaimedTask, QueueTransport, SubmitRequest } from './transport.js';

/** The server, or something on the way to it, does not offer sessions. */
class SessionRefused extends Error {
  override readonly name = 'SessionRefused';
}

interface Pending {
  resolve: (body: unknown, payloads: readonly Uint8Array[]) => void;
  reject: (error: unknown) => void;
}

type Token = ClientOptions['token'];

const maxMessageBytes = 64 * 1024 * 1024;
const submitAttempts = 5;
const firstRetryMs = 100;
const retryMs = 1_000;

/** The stream to one server. It is over with its first error. */
class Session {
  readonly #pending = new Map<number, Pending>();
  readonly #writer: MessageWriter<SessionRequest>;
  #call: DuplexCall | undefined;
  #calls = 0;
  isOver = false;

  constructor(
    private readonly channel: Channel,
    private readonly socket: Socket,
    private readonly options: {
      token: Token;
      onStopped: (id: string, how: 'cancelled' | 'lost') => void;
      onOver: () => void;
    },
  ) {
    this.#writer = new MessageWriter<SessionRequest>(
      () => ({}),
      (message) => this.#call!.send(message),
    );
  }

  open(): void {
    const { token } = this.options;
    const bearer = typeof token === 'function' ? token() : token;
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    const observer = {
      takeMessage: (message: Buffer) => this.#take(message),
      takeEnd: (error: CallError | undefined) => this.#end(error),
    };
    this.#call = this.channel.duplex(sessionPath, observer, { headers });
    this.socket.unref();
  }

  /** Resolves with the body of the answer. `write` adds the call to the next message. */
  request<Body>(
    write: (content: SessionRequest, call: number, payloads: Uint8Array[]) => void,
    read: (body: unknown, payloads: readonly Uint8Array[]) => Body,
    signal?: AbortSignal,
  ): Promise<Body> {
    const call = ++this.#calls;
    return new Promise((resolve, reject) => {
      if (this.isOver) return reject(new Error('The connection to the queue is lost'));
      const onAbort = () => {
        this.#writer.add((content) => (content.drop ??= []).push(call));
      };
      signal?.addEventListener('abort', onAbort);
      const end = () => signal?.removeEventListener('abort', onAbort);
      if (this.#pending.size === 0) this.socket.ref();
      this.#pending.set(call, {
        resolve: (body, payloads) => {
          end();
          resolve(read(body, payloads));
        },
        reject: (error) => {
          end();
          reject(error);
        },
      });
      this.#writer.add((content, payloads) => write(content, call, payloads));
      if (signal?.aborted) onAbort();
    });
  }

  /** Each request is the credit for one batch of events. */
  async *events(query: EventQuery, signal: AbortSignal): AsyncGenerator<EventBatch, void, void> {
    let first: number | undefined;
    const drop = () => {
      if (!this.isOver) this.#writer.add((content) => (content.drop ??= []).push(first!));
    };
    signal.addEventListener('abort', drop);
    for (;;) {
      const batch = await this.request(
        (content, call) => {
          const next = first === undefined ? { call, query } : { call, of: first };
          (content.events ??= []).push(next);
          first ??= call;
        },
        (body) => body as EventBatch | null,
      );
      if (!batch || signal.aborted) return;
      yield batch;
    }
  }

  close(): void {
    this.#writer.flush();
    this.#call?.endRequest();
    this.channel.close();
  }

  #take(message: Buffer): void {
    const { content, payloads } = decodeMessage<SessionResponse>(message);
    for (const { call, body, error } of content.answers ?? []) {
      const pending = this.#pending.get(call);
      this.#pending.delete(call);
      if (error) pending?.reject(new ApiError(error.status, error, error.retry_after_ms));
      else pending?.resolve(body, payloads);
    }
    for (const id of content.cancelled ?? []) this.options.onStopped(id, 'cancelled');
    for (const id of content.lost ?? []) this.options.onStopped(id, 'lost');
    // A program that only submitted may end without closing.
    if (this.#pending.size === 0) this.socket.unref();
  }

  #end(cause: CallError | undefined): void {
    if (this.isOver) return;
    this.isOver = true;
    const error = new Error(`The connection to the queue is lost: ${cause?.details ?? 'closed'}`, {
      cause,
    });
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.channel.close();
    this.options.onOver();
  }
}

export interface SessionOptions {
  /** The next one is tried when one is away. */
  urls: readonly string[];
  token: Token;
  /** Serves what has no session: other operations, and servers without one. */
  rest: QueueTransport;
}

/** Submits, claims and settles over a session; falls back to REST where there is none. */
export class SessionTransport implements QueueTransport {
  readonly #stopped = new Set<(id: string, how: 'cancelled' | 'lost') => void>();
  readonly #reconnected = new Set<() => void>();
  #session: Promise<Session | undefined> | undefined;
  #url = 0;
  /** Until then REST is used; Infinity: there are no sessions. */
  #retryAt = 0;
  #wasOpen = false;
  #isClosed = false;

  readonly call: QueueTransport['call'];

  constructor(private readonly options: SessionOptions) {
    this.call = options.rest.call;
  }

  async submit(queue: string, task: SubmitRequest) {
    // With its id, a task that is sent again is stored once.
    const { payload, ...body } = { ...task, id: task.id ?? newUlid() };
    for (let attempt = 1; ; attempt++) {
      try {
        const session = await this.#open();
        if (!session) return await this.options.rest.submit(queue, { ...task, id: body.id });
        return await session.request(
          (content, call, payloads) => {
            const place = payload && payloads.push(payload) - 1;
            (content.submit ??= []).push({ call, queue, task: body, payload: place });
          },
          (answer) => answer as Awaited<ReturnType<QueueTransport['submit']>>,
        );
      } catch (error) {
        const isFinal = error instanceof ApiError && ![429, 503].includes(error.status);
        if (isFinal || attempt >= submitAttempts) throw error;
        const leastMs = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
        await pause(Math.max(leastMs, firstRetryMs * 2 ** attempt * (0.5 + Math.random() / 2)));
      }
    }
  }

  submitBatch: QueueTransport['submitBatch'] = (queue, tasks) =>
    Promise.all(
      tasks.map(async (task, index) => {
        try {
          const envelope = await this.submit(queue, task);
          return { index, status: 202, envelope } as never;
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          return { index, status: error.status, error: error.body } as never;
        }
      }),
    );

  async claim(...[queue, request, signal]: Parameters<QueueTransport['claim']>) {
    const session = await this.#open();
    if (!session) return this.options.rest.claim(queue, request, signal);
    return session.request(
      (content, call) => void (content.claim ??= []).push({ call, queue, request }),
      (body, payloads) =>
        (body as { tasks: SentTask[] }).tasks.map(
          // Copied: the message has the payloads of all its tasks.
          (task): ClaimedTask => ({ ...task, payload: Buffer.from(payloads[task.payload]!) }),
        ),
      signal,
    );
  }

  async settle(...[queue, items]: Parameters<QueueTransport['settle']>) {
    const session = await this.#open();
    if (!session) return this.options.rest.settle(queue, items);
    const settled = items.map(async (item, index) => {
      try {
        await session.request(
          (content, call) => void (content.settle ??= []).push({ call, queue, item }),
          () => undefined,
        );
        return { index, status: 200 } as never;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status >= 429) throw error;
        return { index, status: error.status, error: error.body } as never;
      }
    });
    return Promise.all(settled);
  }

  async recordSteps(...[id, body]: Parameters<QueueTransport['recordSteps']>) {
    const session = await this.#open();
    if (!session) return this.options.rest.recordSteps(id, body);
    return session.request(
      (content, call) => void (content.record ??= []).push({ call, id, body }),
      (answer) => answer as Awaited<ReturnType<QueueTransport['recordSteps']>>,
    );
  }

  async extend(...[id, leaseToken, body]: Parameters<QueueTransport['extend']>) {
    const session = await this.#open();
    if (!session) return this.options.rest.extend(id, leaseToken, body);
    return session.request(
      (content, call) =>
        void (content.extend ??= []).push({ call, id, lease_token: leaseToken, body }),
      (answer) => answer as { lease_expires_at: string | null },
    );
  }

  events(query: EventQuery, signal: AbortSignal): AsyncIterable<EventBatch> {
    return resumedEvents((from) => this.#events(from, signal), query, signal);
  }

  async *#events(query: EventQuery, signal: AbortSignal): AsyncGenerator<EventBatch, void, void> {
    const session = await this.#open();
    if (session) yield* session.events(query, signal);
    else if (this.#retryAt === Infinity) yield* this.options.rest.events(query, signal);
  }

  onStopped(listener: (id: string, how: 'cancelled' | 'lost') => void): () => void {
    this.#stopped.add(listener);
    return () => this.#stopped.delete(listener);
  }

  onReconnected(listener: () => void): () => void {
    this.#reconnected.add(listener);
    return () => this.#reconnected.delete(listener);
  }

  get batchesCalls(): boolean {
    return this.#retryAt === 0;
  }

  now(): number {
    return Date.now();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const session = await this.#session?.catch(() => undefined);
    session?.close();
    await this.options.rest.close();
  }

  /** The open session, or a new one; undefined: there is none to be had now, so REST is used. */
  #open(): Promise<Session | undefined> | undefined {
    if (this.#session || this.#retryAt > Date.now()) return this.#session;
    if (this.#isClosed) throw new Error('The queue is closed');
    this.#session = this.#connect().catch((error: unknown) => {
      this.#session = undefined;
      this.#retryAt = error instanceof SessionRefused ? Infinity : Date.now() + retryMs;
      return undefined;
    });
    return this.#session;
  }

  #reopen(): void {
    if (!this.#isClosed && this.#reconnected.size > 0) void this.#open();
  }

  async #connect(): Promise<Session> {
    const { urls, token } = this.options;
    // The next server may have been away before.
    for (let tries = 1; ; tries++) {
      const url = urls[this.#url % urls.length]!;
      try {
        return await this.#connectTo(url, token);
      } catch (error) {
        if (error instanceof SessionRefused || tries >= urls.length) throw error;
        this.#url++;
      }
    }
  }

  async #connectTo(url: string, token: Token): Promise<Session> {
    // Loaded on demand: handlers of callbacks need none of it.
    const { Channel: ChannelOf } = await import('@millrace/wire/grpc-client');
    const { systemClock: clock } = await import('@millrace/kit/clock');
    const socket = await upgradedSocket(url, token);
    const place = () => Promise.resolve(socket);
    const channel = new ChannelOf({ place, clock, authority: new URL(url).host, maxMessageBytes });
    const session = new Session(channel, socket, {
      token,
      onStopped: (id, how) => {
        for (const listener of this.#stopped) listener(id, how);
      },
      onOver: () => {
        this.#session = undefined;
        this.#url++;
        // Workers learn soon which leases they have lost.
        if (this.#reconnected.size > 0) void pause(firstRetryMs).then(() => this.#reopen());
      },
    });
    session.open();
    if (this.#wasOpen) for (const listener of this.#reconnected) listener();
    this.#wasOpen = true;
    return session;
  }
}

/** Upgrades the connection of an HTTP/1.1 request: both sides speak HTTP/2 on it afterwards. */
async function upgradedSocket(url: string, token: Token): Promise<Socket> {
  const bearer = typeof token === 'function' ? token() : token;
  const { request } = url.startsWith('https:')
    ? process.getBuiltinModule('node:https')
    : process.getBuiltinModule('node:http');
  return new Promise((resolve, reject) => {
    const sent: ClientRequest = request(`${url.replace(/\/+$/, '')}/v1/session`, {
      agent: false,
      headers: {
        connection: 'Upgrade',
        upgrade: sessionUpgrade,
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      },
    });
    sent.on('upgrade', (_response: IncomingMessage, socket: Socket, head: Buffer) => {
      if (head.length > 0) socket.unshift(head);
      socket.setNoDelay(true);
      resolve(socket);
    });
    sent.on('response', (response: IncomingMessage) => {
      response.resume();
      const status = response.statusCode!;
      // An overloaded or stopping server may offer one later.
      const isBusy = status === 429 || status === 503;
      const text = `The server answered ${status} to an upgrade`;
      reject(isBusy ? new Error(text) : new SessionRefused(text));
    });
    sent.on('error', reject);
    sent.end();
  });
}
