import { Backoff, type BackoffPolicy } from '@millrace/kit/backoff';
import { type Random, systemRandom } from '@millrace/kit/random';
import { setMaxListeners } from 'node:events';
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { type ServerAddress, parseAddresses } from './address.js';
import { CallRefusal, connectionClosed, isPassing, timedOut } from './failures.js';
import { Router, type Channel, type Preference, type RoutedAttempt } from './router.js';
import { Transport, type TlsOptions } from './transport.js';

/** Reconnects and retries of a client. */
export const retryPolicy: BackoffPolicy = { initialMs: 50, maxMs: 2_000 };

export interface ConnectOptions {
  /** The API key, `id.secret`. A Unix socket needs none. */
  key?: string | undefined;
  tls?: TlsOptions | undefined;
  /** Timeout of a call including retries. Default: 30 s. */
  timeoutMs?: number | undefined;
  /** False disables retries. */
  retry?: boolean | undefined;
  /** With several addresses: which node reads go to. Default: the leader. */
  prefer?: Preference | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
}

/** Options of every remote call. */
export interface CallOptions {
  /** Timeout of the call including retries. */
  timeoutMs?: number | undefined;
  /** Cancels the call, which rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** With several addresses: which node this read goes to. */
  prefer?: Preference | undefined;
}

/** Timeout for the next message of a stream, or a function that returns it. */
interface StreamOptions extends Omit<CallOptions, 'timeoutMs'> {
  timeoutMs?: number | (() => number) | undefined;
}

const defaultTimeoutMs = 30_000;
const maxTimerMs = 2 ** 31 - 1;

type Init<Desc extends DescMessage> = MessageInitShape<Desc>;
type Reply<Desc extends DescMessage> = MessageShape<Desc>;

/**
 * A connection with deadlines and retries. Reads can always be retried; writes can, because their
 * request id makes them idempotent.
 */
export class Session {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly timeoutMs: number;
  readonly #transport: Channel;
  readonly #retry: boolean;
  readonly #pending = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  #writesWaitFor: Promise<unknown> | undefined;

  constructor(url: string | readonly string[], options: ConnectOptions = {}) {
    const { key, tls = {}, prefer = 'leader', clock = systemClock } = options;
    this.clock = clock;
    this.random = options.random ?? systemRandom;
    const addresses = parseAddresses(url);
    const open = (address: ServerAddress) => new Transport(address, { key, tls, clock });
    const { random } = this;
    this.#transport =
      addresses.length === 1
        ? open(addresses[0]!)
        : new Router({ addresses, open, clock, random, prefer });
    this.url = typeof url === 'string' ? url : url.join(',');
    this.timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
    this.#retry = options.retry ?? true;
    setMaxListeners(0, this.#closing.signal);
  }

  /** Aborted when this client closes the connection. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  newRequestId(): string {
    return this.random.ulid(this.clock.now());
  }

  /** A call with retries. */
  async call<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: Init<Input>,
    options: CallOptions = {},
  ): Promise<Reply<Output>> {
    return this.#counted(
      this.#repeated(options, (attempt) => this.#transport.unary(method, request, attempt)),
    );
  }

  /** A call without retries. */
  async callOnce<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: Init<Input>,
    options: CallOptions = {},
  ): Promise<Reply<Output>> {
    this.#checkOpen();
    const { timeoutMs = this.timeoutMs, signal, prefer } = options;
    const deadline = this.clock.now() + timeoutMs;
    return this.#counted(this.#transport.unary(method, request, { deadline, signal, prefer }));
  }

  /** A write. It waits until watches that were opened earlier know their start position. */
  async write<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: Init<Input>,
    options: CallOptions = {},
  ): Promise<Reply<Output>> {
    if (this.#writesWaitFor) await this.#writesWaitFor;
    return this.call(method, request, options);
  }

  /**
   * The messages of a stream. Retried until the first message; after that the caller decides how to
   * resume. `timeoutMs` applies to each message.
   */
  async *stream<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodServerStreaming<Input, Output>,
    request: Init<Input>,
    options: CallOptions = {},
  ): AsyncGenerator<Reply<Output>, void, void> {
    const opened = await this.#repeated(options, async (attempt) => {
      const messages = this.streamOnce(method, request, { ...options, signal: attempt.signal });
      return { messages, first: await messages.next() };
    });
    try {
      let step = opened.first;
      while (!step.done) {
        yield step.value;
        step = await opened.messages.next();
      }
    } finally {
      await opened.messages.return();
    }
  }

  /** Like `stream`, without retries. */
  async *streamOnce<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodServerStreaming<Input, Output>,
    request: Init<Input>,
    { timeoutMs = this.timeoutMs, signal, prefer }: StreamOptions = {},
  ): AsyncGenerator<Reply<Output>, void, void> {
    this.#checkOpen();
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal?.reason);
    const onClose = () => stop.abort(connectionClosed());
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    this.closing.addEventListener('abort', onClose, { once: true });
    const messages = this.#transport.stream(method, request, { signal: stop.signal, prefer });
    try {
      for (;;) {
        const waitMs = typeof timeoutMs === 'number' ? timeoutMs : timeoutMs();
        const late = () => stop.abort(timedOut(this.url, waitMs));
        const timer = this.clock.after(waitMs, late);
        const step = await messages.next().finally(() => timer.cancel());
        if (step.done) return;
        yield step.value;
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.closing.removeEventListener('abort', onClose);
      await messages.return();
    }
  }

  /** Delays writes until `found` settles. */
  holdWrites(found: Promise<unknown>): void {
    const before = this.#writesWaitFor;
    const all = Promise.allSettled([before, found]).then(() => {
      if (this.#writesWaitFor === all) this.#writesWaitFor = undefined;
    });
    this.#writesWaitFor = all;
  }

  /** Ends watches and streams, waits for calls in flight and closes the connection. */
  async close(): Promise<void> {
    if (this.closing.aborted) return;
    this.#closing.abort();
    await Promise.allSettled(this.#pending);
    this.#transport.close();
  }

  /** Waits between two attempts. Unlike the clock's timers, this one keeps the process alive. */
  async pause(delayMs: number, signal?: AbortSignal): Promise<void> {
    const alive = setInterval(() => undefined, maxTimerMs);
    try {
      await this.clock.sleep(delayMs, signal);
    } finally {
      clearInterval(alive);
    }
  }

  #checkOpen(): void {
    if (this.closing.aborted) throw connectionClosed();
  }

  async #counted<Result>(running: Promise<Result>): Promise<Result> {
    this.#pending.add(running);
    try {
      return await running;
    } finally {
      this.#pending.delete(running);
    }
  }

  async #repeated<Result>(
    { timeoutMs = this.timeoutMs, signal, prefer }: CallOptions,
    attempt: (attempt: RoutedAttempt) => Promise<Result>,
  ): Promise<Result> {
    const { clock } = this;
    const deadline = clock.now() + timeoutMs;
    const backoff = new Backoff(retryPolicy, this.random);
    for (;;) {
      this.#checkOpen();
      try {
        return await attempt({ deadline, signal, prefer });
      } catch (error) {
        if (!this.#retry || !(error instanceof CallRefusal) || !isPassing(error)) throw error;
        const delayMs = backoff.next(error.extra.retryAfterMs);
        if (clock.now() + delayMs >= deadline) throw error;
        await this.pause(delayMs, signal);
      }
    }
  }
}
