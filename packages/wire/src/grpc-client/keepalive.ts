import type { Clock, Timer } from '@millrace/kit/clock';
import { callError } from './call-error.js';
import type { ClientConnection } from './client-connection.js';

const intervalMs = 20_000;
const timeoutMs = 10_000;

/** Sends PING on a silent connection with open calls, and closes it without an acknowledgement. */
export class Keepalive {
  #timer: Timer | undefined;
  #frameCount = 0;

  constructor(private readonly clock: Clock) {}

  watch(connection: ClientConnection): void {
    this.#frameCount = connection.frameCount;
    this.#timer = this.clock.after(intervalMs, () => {
      const isSilent = connection.frameCount === this.#frameCount;
      if (isSilent && connection.streamCount > 0) this.#check(connection);
      else this.watch(connection);
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #check(connection: ClientConnection): void {
    connection.ping();
    this.#timer = this.clock.after(timeoutMs, () => {
      if (connection.frameCount !== this.#frameCount) return this.watch(connection);
      connection.destroy(callError('UNAVAILABLE', 'keepalive timeout: no response to PING'));
    });
  }
}
