import type { Timer } from '@millrace/kit/clock';
import type { ConnectionSlot } from '@millrace/kit/connection-limit';
import type { ByteSource } from '../base/byte-source.js';
import { Http2Connection } from '../http2/connection.js';
import { ConnectionMemory } from '../base/connection-memory.js';
import type { SendQueueParts } from '../http2/send-queue.js';
import { kernelBytesFor } from '../base/read-rate.js';
import { openCall, type GrpcServerOptions } from './open-call.js';

const checkMs = 5_000;
// A dead connection is detected within a minute.
const pingMs = 30_000;
const pongMs = 20_000;

/** One client connection, after TLS. */
export class Connection {
  readonly #http2: Http2Connection;
  #check: Timer | undefined;
  #pingedAt: number;
  #pong: Timer | undefined;

  constructor(
    private readonly source: ByteSource,
    private readonly parts: GrpcServerOptions,
    sending: SendQueueParts,
    slot: ConnectionSlot | undefined,
  ) {
    const { socket } = source;
    const { remoteAddress = 'unknown', remotePort } = socket;
    const peer = remotePort === undefined ? remoteAddress : `${remoteAddress}:${remotePort}`;
    this.#http2 = new Http2Connection(source, {
      clock: parts.clock,
      memory: new ConnectionMemory(parts.memory),
      writer: sending.writer,
      turn: sending.turn,
      open: (stream, headers) => openCall(stream, headers, peer, parts, slot),
    });
    this.#http2.onPong = () => this.#pong?.cancel();
    this.#pingedAt = parts.clock.monotonic();
    socket.on('close', () => this.#stopChecks());
    this.#startCheck();
  }

  /** Accepts no more calls, and closes when the calls in flight have ended. */
  close(): void {
    this.#http2.close();
  }

  #startCheck(): void {
    const { clock } = this.parts;
    this.#check = clock.after(checkMs, () => {
      const now = clock.monotonic();
      this.#http2.checkTimeouts(now);
      void this.#checkReader(now);
      if (now - this.#pingedAt >= pingMs) this.#ping(now);
      this.#startCheck();
    });
  }

  async #checkReader(now: number): Promise<void> {
    const { socket } = this.source;
    const isWaiting = this.#http2.hasWaitingResponse;
    this.#http2.checkReader(now, isWaiting ? await kernelBytesFor(socket, this.parts.clock) : 0);
  }

  #ping(now: number): void {
    if (this.#http2.isOver) return;
    this.#pingedAt = now;
    this.#pong = this.parts.clock.after(pongMs, () => this.source.socket.destroy());
    this.#http2.ping();
  }

  #stopChecks(): void {
    this.#check?.cancel();
    this.#pong?.cancel();
  }
}
