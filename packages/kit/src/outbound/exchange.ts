import type { Dispatcher } from 'undici';
import { Failure, failureOf, type OutboundOutcome } from './outcome.js';
import type { Dial } from './dial.js';
import type { Line } from './line.js';
import type { AddressPolicy } from './policy.js';
import type { Target } from './target.js';

export interface ExchangeAsk {
  target: Target;
  policy: AddressPolicy;
  timeoutMs: number;
  connectTimeoutMs: number;
  maxResponseBytes: number;
  signal: AbortSignal | undefined;
}

type Controller = Dispatcher.DispatchController;

/**
 * One request on its way. It settles once, whatever happens first: the response, a failure, the
 * deadline, an abort. Everything that arrives later is let go of.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  isSettled = false;
  /** The line that carries this request; none while it waits for one. */
  line: Line | undefined;
  /** The connection being opened for this request, while it is being opened. */
  dial: Dial | undefined;
  /** The peer of the connection that carries this request. */
  remoteIp: string | undefined;

  #controller: Controller | undefined;
  #status = 0;
  #headers: Record<string, string | string[] | undefined> = {};
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(
    readonly ask: ExchangeAsk,
    readonly elapsedMs: () => number,
    readonly settle: (outcome: OutboundOutcome) => void,
  ) {}

  expire(): void {
    const message = `No whole response within ${this.ask.timeoutMs} ms (${this.#whereabouts()})`;
    this.#stop(new Failure('TIMEOUT', message, this.remoteIp ?? this.dial?.address));
  }

  abort(message: string): void {
    this.#stop(new Failure('ABORTED', message, this.remoteIp));
  }

  /** Settles with the failure and lets go of the connection. */
  #stop(failure: Failure): void {
    if (this.isSettled) return;
    this.#fail(failure);
    this.dial?.cancel(failure);
    this.#controller?.abort(failure);
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.isSettled) controller.abort(new Failure('ABORTED', 'Nobody waits for this any more'));
  }

  onResponseStart(
    _: Controller,
    status: number,
    headers: Dispatcher.ResponseData['headers'],
  ): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.isSettled) return;
    const room = this.ask.maxResponseBytes - this.#length;
    this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#length += Math.min(chunk.length, room);
    if (chunk.length <= room) return;
    this.#respond(true);
    controller.abort(new Failure('ABORTED', 'The rest of the response is not wanted'));
  }

  onResponseEnd(): void {
    if (!this.isSettled) this.#respond(false);
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    if (!this.isSettled) this.#fail(failureOf(error, this.remoteIp));
  }

  #respond(truncated: boolean): void {
    this.isSettled = true;
    // Copied even when there is one chunk, which would hold on to the socket's whole buffer.
    const body = Buffer.concat(this.#chunks, this.#length);
    this.#chunks = [];
    this.settle({
      ok: true,
      status: this.#status,
      headers: this.#headers,
      body,
      truncated,
      remoteIp: this.remoteIp ?? '',
      durationMs: this.elapsedMs(),
    });
  }

  #fail({ errorType, message, remoteIp }: Failure): void {
    this.isSettled = true;
    this.#chunks = [];
    this.settle({
      ok: false,
      errorType,
      message,
      ...(remoteIp === undefined ? {} : { remoteIp }),
      durationMs: this.elapsedMs(),
    });
  }

  #whereabouts(): string {
    if (this.dial !== undefined) return this.dial.phase;
    if (this.#status >= 200) return 'reading the response';
    return this.#controller === undefined ? 'waiting for a connection' : 'waiting for the response';
  }
}
