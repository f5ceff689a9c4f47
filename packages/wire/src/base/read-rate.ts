import type { Socket } from 'node:net';
import type { Clock } from '@millrace/kit/clock';
import { ReadRate } from '@millrace/kit/peer-memory';
import { SocketQueues } from '@millrace/kit/socket-queues';

/** Checks the read rate of a peer from a running total, sampled every few seconds. */
export class ReadRateCheck {
  readonly #rate = new ReadRate();
  #takenBefore: number | undefined;

  /** `takenBytes`: running total of bytes read by the peer. True when it is too slow. */
  isTooSlow(now: number, isWaiting: boolean, takenBytes: number): boolean {
    if (!isWaiting) {
      this.#takenBefore = undefined;
      this.#rate.drained();
      return false;
    }
    this.#rate.taken(takenBytes - (this.#takenBefore ?? takenBytes));
    this.#takenBefore = takenBytes;
    this.#rate.waiting(now);
    return this.#rate.isTooSlow(now);
  }
}

const maxAgeMs = 1_000;
let latest: { readonly at: number; readonly queues: Promise<SocketQueues> } | undefined;

/** What the kernel holds for a peer. Connections that ask at about the same time share a read. */
export async function kernelBytesFor(socket: Socket, clock: Clock): Promise<number> {
  const now = clock.monotonic();
  if (!latest || Math.abs(now - latest.at) > maxAgeMs) {
    latest = { at: now, queues: SocketQueues.read() };
  }
  return (await latest.queues).heldFor(socket);
}
