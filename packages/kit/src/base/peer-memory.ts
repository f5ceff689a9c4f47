/**
 * Limits on what a server holds in memory for its peers: unfinished requests, decompressed
 * messages and unsent responses. One budget per process; one account per connection.
 */
export interface PeerMemoryLimits {
  /** For all connections together. */
  totalBytes: number;
  /** For one connection. */
  connectionBytes: number;
}

export const defaultPeerMemoryBytes = 256 * 1024 * 1024;

/** A connection may hold a quarter of the process budget. */
export function peerMemoryLimits(totalBytes = defaultPeerMemoryBytes): PeerMemoryLimits {
  return { totalBytes, connectionBytes: Math.floor(totalBytes / 4) };
}

export class PeerMemory {
  #heldBytes = 0;

  constructor(readonly limits: PeerMemoryLimits) {}

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** True while all connections together hold more than the process limit. */
  get isOverLimit(): boolean {
    return this.#heldBytes > this.limits.totalBytes;
  }

  /** Opens the account of one connection. Close it when the connection closes. */
  openAccount(): PeerMemoryAccount {
    return new PeerMemoryAccount(this.limits, {
      heldBytes: () => this.#heldBytes,
      add: (bytes) => (this.#heldBytes += bytes),
    });
  }
}

const nearlyFull = 7 / 8;

interface ProcessTotal {
  heldBytes(): number;
  add(bytes: number): void;
}

export class PeerMemoryAccount {
  #heldBytes = 0;
  #isClosed = false;

  constructor(
    private readonly limits: PeerMemoryLimits,
    private readonly total: ProcessTotal,
  ) {}

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Reserves `bytes`, or returns false when a limit would be passed. Release what was reserved. */
  tryReserve(bytes: number): boolean {
    const { totalBytes, connectionBytes } = this.limits;
    if (this.#heldBytes + bytes > connectionBytes) return false;
    if (this.total.heldBytes() + bytes > totalBytes) return false;
    this.reserve(bytes);
    return true;
  }

  /** Counts bytes that exist already, such as a response, even past the limit. */
  reserve(bytes: number): void {
    if (this.#isClosed) return;
    this.#heldBytes += bytes;
    this.total.add(bytes);
  }

  /** True while the connection or the process holds more than its limit. */
  get isOverLimit(): boolean {
    const { totalBytes, connectionBytes } = this.limits;
    return this.#heldBytes > connectionBytes || this.total.heldBytes() > totalBytes;
  }

  /**
   * True when the connection or the process holds more than 7/8 of its limit: new requests are
   * refused then, before work is done for a response that could not be held.
   */
  get isNearlyFull(): boolean {
    const { totalBytes, connectionBytes } = this.limits;
    return (
      this.#heldBytes > connectionBytes * nearlyFull ||
      this.total.heldBytes() > totalBytes * nearlyFull
    );
  }

  release(bytes: number): void {
    if (this.#isClosed) return;
    const released = Math.min(bytes, this.#heldBytes);
    this.#heldBytes -= released;
    this.total.add(-released);
  }

  /** Releases everything this connection still holds. */
  close(): void {
    this.release(this.#heldBytes);
    this.#isClosed = true;
  }
}

/** A peer that reads slower than this while responses wait is disconnected. */
export const minReadBytesPerSecond = 1024;
export const readRateWindowMs = 30_000;

/**
 * Tracks how fast one peer reads while responses wait for it. Time in which nothing waits does
 * not count. Times come from the monotonic clock.
 */
export class ReadRate {
  #windowStartedAt: number | undefined;
  #bytesInWindow = 0;

  /** Responses are waiting for the peer now. Does nothing while a window is open already. */
  waiting(now: number): void {
    this.#windowStartedAt ??= now;
  }

  /** The peer took `bytes`. */
  taken(bytes: number): void {
    this.#bytesInWindow += bytes;
  }

  /** Nothing waits any more. */
  drained(): void {
    this.#windowStartedAt = undefined;
    this.#bytesInWindow = 0;
  }

  /** Call periodically: judges each whole window once and starts the next. */
  isTooSlow(now: number): boolean {
    if (this.#windowStartedAt === undefined) return false;
    const elapsedMs = now - this.#windowStartedAt;
    if (elapsedMs < readRateWindowMs) return false;
    const bytesPerSecond = (this.#bytesInWindow * 1000) / elapsedMs;
    this.#windowStartedAt = now;
    this.#bytesInWindow = 0;
    return bytesPerSecond < minReadBytesPerSecond;
  }
}
