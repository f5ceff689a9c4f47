import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleepOn, type Clock, type Timer } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { seededRandom } from '@millrace/kit/random';
import { vi } from 'vitest';
import { memorySessions } from '../sessions/sessions.test-support.js';
import { openStore, type Store } from '../storage/store.js';

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now = Date.parse('2026-01-15T09:30:00.000Z');
  readonly #timers = new Set<{ at: number; run: () => void }>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): Timer {
    const timer = { at: this.#now + Math.max(0, delayMs), run };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  advance(durationMs: number): void {
    const end = this.#now + durationMs;
    for (;;) {
      const [next] = [...this.#timers].sort((a, b) => a.at - b.at);
      if (!next || next.at > end) break;
      this.#timers.delete(next);
      this.#now = next.at;
      next.run();
    }
    this.#now = end;
  }
}

/** What guard and notify stand on: a real store in a directory of its own, and sessions in memory. */
export class TestStore {
  readonly clock = new ManualClock();
  readonly random = seededRandom(1);
  readonly log = memoryLog();
  readonly dataDir = mkdtempSync(join(tmpdir(), 'mr-room-'));
  readonly sessions = memorySessions({ clock: this.clock, random: this.random });
  #store: Store | undefined;

  get world() {
    return { clock: this.clock, random: this.random, log: this.log };
  }

  async open(): Promise<Store> {
    return (this.#store ??= await openStore(join(this.dataDir, 'daemon'), this.world));
  }

  /** As a daemon that ends. */
  async closeStore(): Promise<void> {
    await this.#store?.close();
    this.#store = undefined;
  }

  async dispose(): Promise<void> {
    await this.closeStore();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  get warnings(): string[] {
    return this.log.lines
      .filter(({ level }) => level === 'warn' || level === 'error')
      .map(({ message, fields }) =>
        'reason' in fields ? `${message}: ${fields['reason']}` : message,
      );
  }
}

/** Waits for what comes about in its own time. */
export function until(check: () => unknown): Promise<unknown> {
  return vi.waitFor(
    async () => {
      if (!(await check())) throw new Error(`not yet: ${String(check)}`);
    },
    { timeout: 60_000, interval: 5 },
  );
}
