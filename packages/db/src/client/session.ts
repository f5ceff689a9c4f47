import { setMaxListeners } from 'node:events';
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { systemRandom, type Random } from '@millrace/kit/random';
import { parseAddress } from './address.js';
import { Backoff } from './backoff.js';
import { CallRefusal, connectionClosed, isPassing, timedOut } from './failures.js';
import { Transport, type TlsOptions } from './transport.js';

export interface ConnectOptions {
  /** The API key, `id.secret`. A Unix socket needs none. */
  key?: string | undefined;
  tls?: TlsOptions | undefined;
  /** How long a call may take with all its repetitions: 30 s unless told. */
  timeoutMs?: number | undefined;
  /** False: a call that fails is not tried again. */
  retry?: boolean | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
}

/** What every call over a connection may carry. */
export interface CallOptions {
  /** How long the call may take with all its repetitions. */
  timeoutMs?: number | undefined;
  /** Gives the call up; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** How long the next message of a stream may take to come, perhaps asked anew for each. */
interface StreamOptions extends Omit<CallOptions, 'timeoutMs'> {
  timeoutMs?: number | (() => number) | undefined;
}

const defaultTimeoutMs = 30_000;
const maxTimerMs = 2 ** 31 - 1;

type Init<Desc extends DescMessage> = MessageInitShape<Desc>;
type Reply<Desc extends DescMessage> = MessageShape<Desc>;

/**
 * A connection with its manners: deadlines, and repetition of what may be repeated. Reads always
 * may; a write may because it carries a request id, so that the server does it once.
 */
export class Session {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly timeoutMs: number;
  readonly #transport: Transport;
  readonly #retry: boolean;
  readonly #pending = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  #writesWaitFor: Promise<unknown> | undefined;

  constructor(url: string, options: ConnectOptions = {}) {
    const { key, tls = {} } = options;
    this.#transport = new Transport(parseAddress(url), { key, tls });
    this.url = url;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? systemRandom;
    this.timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
    this.#retry = options.retry ?? true;
    setMaxListeners(0, this.#closing.signal);
  }

  /** Aborted when the connection is closed here. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  newRequestId(): string {
    return this.random.ulid(this.clock.now());
  }

  /** A call that may be repeated. */
  async call<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: Init<Input>,
    options: CallOptions = {},
  ): Promise<Reply<Output>> {
    return this.#counted(
      this.#repeated(options, (attempt) => this.#transport.unary(method, request, attempt)),
    );
  }

  /** A call that is made once, whatever becomes of it. */
  async callOnce<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: Init<Input>,
    options: CallOptions = {},
  ): Promise<Reply<Output>> {
    this.#checkOpen();
    const { timeoutMs = this.timeoutMs, signal } = options;
    const deadline = this.clock.now() + timeoutMs;
    return this.#counted(this.#transport.unary(method, request, { deadline, signal }));
  }

  /** A write: it waits for watches that were asked for before it to have found their place. */
  async write<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: Init<Input>,
    options: CallOptions = {},
  ): Promise<Reply<Output>> {
    if (this.#writesWaitFor) await this.#writesWaitFor;
    return this.call(method, request, options);
  }

  /**
   * The messages of a stream. It may be repeated until the first one has come; after that it is
   * the caller who knows how to go on. `timeoutMs` is how long each message may take to come.
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

  /** As `stream`, in one attempt. */
  async *streamOnce<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodServerStreaming<Input, Output>,
    request: Init<Input>,
    { timeoutMs = this.timeoutMs, signal }: StreamOptions = {},
  ): AsyncGenerator<Reply<Output>, void, void> {
    this.#checkOpen();
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal?.reason);
    const onClose = () => stop.abort(connectionClosed());
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    this.closing.addEventListener('abort', onClose, { once: true });
    const messages = this.#transport.stream(method, request, { signal: stop.signal });
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

  /** Holds writes back until `found` has settled. */
  holdWrites(found: Promise<unknown>): void {
    const before = this.#writesWaitFor;
    const all = Promise.allSettled([before, found]).then(() => {
      if (this.#writesWaitFor === all) this.#writesWaitFor = undefined;
    });
    this.#writesWaitFor = all;
  }

  /** Ends watches and streams, waits for calls under way, and lets the connection go. */
  async close(): Promise<void> {
    if (this.closing.aborted) return;
    this.#closing.abort();
    await Promise.allSettled(this.#pending);
    this.#transport.close();
  }

  /** Waits between two attempts. The clock's timers let a process end; this one does not. */
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
    { timeoutMs = this.timeoutMs, signal }: CallOptions,
    attempt: (attempt: { deadline: number; signal: AbortSignal | undefined }) => Promise<Result>,
  ): Promise<Result> {
    const { clock } = this;
    const deadline = clock.now() + timeoutMs;
    const backoff = new Backoff(this.random);
    for (;;) {
      this.#checkOpen();
      try {
        return await attempt({ deadline, signal });
      } catch (error) {
        if (!this.#retry || !(error instanceof CallRefusal) || !isPassing(error)) throw error;
        const delayMs = backoff.next(error.extra.retryAfterMs);
        if (clock.now() + delayMs >= deadline) throw error;
        await this.pause(delayMs, signal);
      }
    }
  }
}
