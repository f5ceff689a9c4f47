import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionSlot } from '../base/connection-limit.js';
import { ReadRate, type PeerMemory, type PeerMemoryAccount } from '../base/peer-memory.js';

const peerOf = Symbol('peer');
type PeerSocket = Socket & { [peerOf]?: Peer };

/** One connection of an HTTP server: what it holds in memory and how fast it reads. */
export class Peer {
  readonly account: PeerMemoryAccount;
  /** Exchanges whose response is not complete; more than one when requests are pipelined. */
  openExchanges = 0;
  latest: { readonly response: ServerResponse } | undefined;
  readonly #rate = new ReadRate();
  #takenBytes = 0;
  #wasWaiting = false;

  constructor(
    readonly socket: Socket,
    memory: PeerMemory,
    readonly slot: ConnectionSlot,
  ) {
    this.account = memory.openAccount();
    (socket as PeerSocket)[peerOf] = this;
  }

  static of(socket: Socket): Peer | undefined {
    return (socket as PeerSocket)[peerOf];
  }

  /** True while a response is being written, into which nothing else must be written. */
  get isResponding(): boolean {
    if (this.openExchanges === 0) return false;
    return this.openExchanges > 1 || this.latest?.response.headersSent === true;
  }

  get isWaiting(): boolean {
    return this.socket.writableLength > 0;
  }

  /**
   * Call periodically. True when the peer reads too slowly while responses wait for it.
   * `kernelBytes`: what the kernel holds for it, which the peer has not read yet.
   */
  isTooSlow(now: number, kernelBytes: number): boolean {
    const { bytesWritten, writableLength } = this.socket;
    const takenBytes = bytesWritten - writableLength - kernelBytes;
    if (writableLength === 0) {
      this.#rate.drained();
    } else {
      // What was taken before responses began to wait says nothing about the rate.
      if (this.#wasWaiting) this.#rate.taken(takenBytes - this.#takenBytes);
      this.#rate.waiting(now);
    }
    this.#wasWaiting = writableLength > 0;
    this.#takenBytes = takenBytes;
    return this.#rate.isTooSlow(now);
  }
}
