import type { PeerMemory, PeerMemoryAccount } from '@millrace/kit/peer-memory';

/** Memory held for the peer of one connection, counted against the process limits. */
export class ConnectionMemory {
  readonly #account: PeerMemoryAccount;
  /** Response bytes that are not sent yet. */
  #unsentBytes = 0;
  /** Written, but still queued in the socket. */
  #backlogBytes = 0;
  #waiting: (() => void)[] = [];

  constructor(private readonly process: PeerMemory) {
    this.#account = process.openAccount();
  }

  /** For request bytes; false when a limit would be exceeded. */
  tryReserve(bytes: number): boolean {
    return this.#account.tryReserve(bytes);
  }

  release(bytes: number): void {
    this.#account.release(bytes);
  }

  addUnsent(bytes: number): void {
    this.#unsentBytes += bytes;
    this.#account.reserve(bytes);
  }

  removeUnsent(bytes: number): void {
    this.#unsentBytes -= bytes;
    this.#account.release(bytes);
    if (this.#waiting.length > 0 && !this.isCongested) this.#wake();
  }

  setBacklog(bytes: number): void {
    const more = bytes - this.#backlogBytes;
    this.#backlogBytes = bytes;
    if (more > 0) this.#account.reserve(more);
    else this.#account.release(-more);
  }

  /** True while the peer reads too slowly for further responses to be built. */
  get isCongested(): boolean {
    const { connectionBytes } = this.process.limits;
    if (this.#unsentBytes > connectionBytes / 2) return true;
    return this.isProcessPressed && this.#unsentBytes > connectionBytes / 16;
  }

  get isProcessPressed(): boolean {
    return this.process.heldBytes > this.process.limits.totalBytes / 2;
  }

  /** Calls `run` when the peer has read enough, or has disconnected. */
  whenDrained(run: () => void): void {
    this.#waiting.push(run);
  }

  close(): void {
    this.#account.close();
    this.#unsentBytes = this.#backlogBytes = 0;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }
}
