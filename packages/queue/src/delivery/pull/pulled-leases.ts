import type { Clock } from '@millrace/kit/clock';
import type { LeasedTask } from '../../core/attempt-record.js';
import type { TargetHealth } from '../../core/outcome.js';
import { Alarm } from '../state/alarm.js';
import type { QueueState } from '../state/queue-state.js';
import type { PulledTask } from '../state/waiting-claims.js';

export interface PulledLease {
  /** Without its payload, which the worker has. */
  task: LeasedTask;
  state: QueueState;
  breakerMark: number;
  leaseEnd: number;
}

/**
 * Leases that workers took from this server, by token. They save a read of the task when it is
 * settled here; a lease that is not found here is looked up in the store.
 */
export class PulledLeases {
  readonly #leases = new Map<string, PulledLease>();
  readonly #alarm: Alarm;
  readonly #listeners = new Set<(token: string) => void>();

  /** `isShared`: other servers extend and settle leases too. */
  constructor(
    private readonly clock: Clock,
    private readonly isShared: boolean,
  ) {
    this.#alarm = new Alarm(clock, () => this.#dropExpired());
  }

  add(task: PulledTask, state: QueueState): void {
    const { id, queue, attempt, redriveCount, headers, lease } = task;
    const breakerMark = state.breaker?.start() ?? 0;
    this.#leases.set(lease.token, {
      task: { id, queue, attempt, redriveCount, headers, lease },
      state,
      breakerMark,
      leaseEnd: lease.expiresAt,
    });
    this.#alarm.ringIn(lease.expiresAt - this.clock.now());
  }

  /** The lease if the task is held under it. */
  find(id: string, token: string): Readonly<PulledLease> | undefined {
    const found = this.#leases.get(token);
    return found?.task.id === id && found.leaseEnd > this.clock.now() ? found : undefined;
  }

  extended(token: string, leaseEnd: number): void {
    const found = this.#leases.get(token);
    if (found) found.leaseEnd = leaseEnd;
  }

  /** The lease was settled or has expired. */
  ended(token: string, health: TargetHealth): void {
    if (!this.#leases.has(token)) return;
    this.#drop(token, health);
    for (const listener of this.#listeners) listener(token);
  }

  #drop(token: string, health: TargetHealth): void {
    const found = this.#leases.get(token)!;
    this.#leases.delete(token);
    found.state.callEnded(found.breakerMark, health);
  }

  /**
   * Calls the listener with the token of each lease that ends on this server. Returns the
   * unsubscribe function.
   */
  onEnded(listener: (token: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    this.#alarm.cancel();
  }

  /** Leases that were settled on another server, or whose end was found there. */
  #dropExpired(): void {
    const now = this.clock.now();
    let next = Infinity;
    for (const [token, { leaseEnd }] of this.#leases) {
      if (leaseEnd <= now) {
        // Another server may have extended it.
        if (this.isShared) this.#drop(token, 'unknown');
        else this.ended(token, 'unknown');
      } else next = Math.min(next, leaseEnd);
    }
    if (next < Infinity) this.#alarm.ringIn(next - now);
  }
}
