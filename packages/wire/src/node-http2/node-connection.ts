import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Timer } from '@millrace/kit/clock';
import type { ConnectionSlot } from '@millrace/kit/connection-limit';
import type { CallHeaders } from '../grpc/headers.js';
import { kernelBytesFor } from '../http2/kernel-bytes.js';
import { openCall, type GrpcServerOptions } from '../grpc/open-call.js';
import { ConnectionMemory } from '../http2/connection-memory.js';
import { errorCodes } from '../http2/protocol.js';
import { ReadRateCheck } from '../http2/read-rate-check.js';
import { NodeStream } from './node-stream.js';

const checkMs = 5_000;
const pingMs = 30_000;
const pongMs = 20_000;

/** One session of node:http2, with the same limits as `Connection`. */
export class NodeConnection {
  readonly #memory: ConnectionMemory;
  readonly #streams = new Set<NodeStream>();
  readonly #readerCheck = new ReadRateCheck();
  readonly #peer: string;
  #takenBytes = 0;
  #check: Timer | undefined;
  #pong: Timer | undefined;
  #pingedAt: number;

  constructor(
    private readonly session: ServerHttp2Session,
    private readonly options: GrpcServerOptions,
    private readonly slot: ConnectionSlot | undefined,
  ) {
    const { remoteAddress = 'unknown', remotePort } = session.socket;
    this.#peer = remotePort === undefined ? remoteAddress : `${remoteAddress}:${remotePort}`;
    this.#memory = new ConnectionMemory(options.memory);
    this.#pingedAt = options.clock.monotonic();
    session.on('close', () => this.#close());
    this.#startCheck();
  }

  open(incoming: ServerHttp2Stream, headers: CallHeaders): void {
    const stream = new NodeStream(incoming, this.#memory, (bytes) => (this.#takenBytes += bytes));
    this.#streams.add(stream);
    incoming.on('close', () => this.#streams.delete(stream));
    stream.user = openCall(stream, headers, this.#peer, this.options, this.slot);
  }

  #startCheck(): void {
    const { clock } = this.options;
    this.#check = clock.after(checkMs, () => {
      const now = clock.monotonic();
      for (const stream of this.#streams) stream.user?.checkTimeouts(now);
      void this.#checkReader(now);
      if (now - this.#pingedAt >= pingMs) this.#ping(now);
      this.#startCheck();
    });
  }

  async #checkReader(now: number): Promise<void> {
    let isWaiting = false;
    for (const { hasMore, user } of this.#streams) {
      if (hasMore && user?.isExemptFromReadRate !== true) isWaiting = true;
    }
    const { socket } = this.session;
    const kernelBytes = isWaiting ? await kernelBytesFor(socket, this.options.clock) : 0;
    if (this.session.destroyed) return;
    if (!this.#readerCheck.isTooSlow(now, isWaiting, this.#takenBytes - kernelBytes)) return;
    this.session.goaway(errorCodes.ENHANCE_YOUR_CALM);
    this.session.destroy();
  }

  #ping(now: number): void {
    if (this.session.destroyed) return;
    this.#pingedAt = now;
    this.#pong = this.options.clock.after(pongMs, () => this.session.destroy());
    this.session.ping(() => this.#pong?.cancel());
  }

  #close(): void {
    this.#check?.cancel();
    this.#pong?.cancel();
    this.#memory.close();
  }
}
