import type { AnswerSink } from './answer.js';
import type { AnswerHead } from './answer-head.js';
import type { OutboundOutcome } from '@millrace/kit/outbound';
import { Failure } from './failure.js';
import type { Dial } from './dial.js';
import type { AddressPolicy } from '@millrace/kit/outbound';
import type { OutgoingRequest } from './request-bytes.js';
import type { Target } from '@millrace/kit/outbound';

export interface ExchangeAsk {
  target: Target;
  policy: AddressPolicy;
  request: OutgoingRequest;
  timeoutMs: number;
  connectTimeoutMs: number;
  maxResponseBytes: number;
  signal: AbortSignal | undefined;
}

/** A connection that carries one request at a time. */
export interface Carrier {
  exchange: Exchange | undefined;
  carry(exchange: Exchange): void;
  /** Ends the current request; the connection becomes idle. */
  rest(): void;
  drop(): void;
}

/**
 * One request on its way. It settles once, whatever happens first: the response, a failure, the
 * deadline, an abort. Everything that arrives later is let go of.
 */
export class Exchange implements AnswerSink {
  isSettled = false;
  /** The line that carries this request; none while it waits for one. */
  line: Carrier | undefined;
  /** The connection being opened for this request, while it is being opened. */
  dial: Dial | undefined;
  /** The peer of the connection that carries this request. */
  remoteIp: string | undefined;

  #head: AnswerHead | undefined;
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

  headArrived(head: AnswerHead): void {
    this.#head = head;
  }

  bodyArrived(bytes: Buffer): boolean {
    const room = this.ask.maxResponseBytes - this.#length;
    const taken = Math.min(bytes.length, room);
    // Copied: the next read of any connection may be to the same place.
    if (taken > 0) this.#chunks.push(Buffer.from(bytes.subarray(0, taken)));
    this.#length += taken;
    return bytes.length <= room;
  }

  /** The response is whole, or cut off where no more of it was wanted. */
  answered(truncated: boolean): void {
    if (this.isSettled) return;
    const { status, headers } = this.#head!;
    const chunks = this.#chunks;
    this.isSettled = true;
    this.#chunks = [];
    this.settle({
      ok: true,
      status,
      headers,
      body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, this.#length),
      truncated,
      remoteIp: this.remoteIp ?? '',
      durationMs: this.elapsedMs(),
    });
  }

  failed({ errorType, message, remoteIp = this.remoteIp }: Failure): void {
    if (this.isSettled) return;
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

  /** Lets go of the connection, which nobody else could use as it is, and settles. */
  #stop(failure: Failure): void {
    if (this.isSettled) return;
    this.line?.drop();
    this.dial?.cancel(failure);
    this.failed(failure);
  }

  #whereabouts(): string {
    if (this.dial !== undefined) return this.dial.phase;
    if (this.#head !== undefined) return 'reading the response';
    return this.line === undefined ? 'waiting for a connection' : 'waiting for the response';
  }
}
