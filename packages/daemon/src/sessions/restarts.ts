import type { Clock, Timer } from '@millrace/kit/clock';
import { withFacts, type Entry } from '../core/session.js';
import type { SessionStore } from './session-store.js';

export interface RestartParts {
  store: SessionStore;
  clock: Clock;
  /** Starts it again. */
  revive: (id: string) => Promise<void>;
}

/** Maximum number of consecutive automatic restarts. */
export const maxAutoRestarts = 5;
const firstDelayMs = 2_000;
const maxDelayMs = 300_000;
/** An agent that has worked this long is not in a crash loop. */
const soundMs = 600_000;

/** Restarts agents with `auto_restart`, with growing delays and a maximum count. */
export class Restarts {
  readonly #parts: RestartParts;
  readonly #timers = new Map<string, Timer>();
  #isClosed = false;

  constructor(parts: RestartParts) {
    this.#parts = parts;
  }

  /** Resumes restarts planned before the daemon stopped. */
  resume(): void {
    for (const entry of this.#parts.store.all()) this.#arm(entry);
  }

  /** Plans the restart of a session that has just ended, if it is to have one. */
  async plan(id: string): Promise<void> {
    const { store, clock } = this.#parts;
    const planned = await store.change(id, (entry) => {
      const now = clock.now();
      const delay = delayFor(entry, now);
      if (delay === undefined) return entry;
      const { session, handle } = entry;
      const note =
        delay === 'never'
          ? `it was restarted ${maxAutoRestarts} times in a row and is left alone`
          : `it is restarted in ${Math.ceil(delay / 1000)} s`;
      const reason = `${session.status_reason ?? 'it ended'}; ${note}`;
      if (session.status_reason?.endsWith(note)) return entry;
      const noted = withFacts(session, { status_reason: reason }, now);
      if (delay === 'never') return { session: noted, handle };
      const autoRestarts = inARow(entry);
      return { session: noted, handle: { ...handle, autoRestarts, restartAt: now + delay } };
    });
    if (planned) this.#arm(planned);
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) timer.cancel();
  }

  #arm({ session: { id }, handle: { restartAt } }: Entry): void {
    if (restartAt === null || this.#isClosed) return;
    this.#timers.get(id)?.cancel();
    const delay = Math.max(0, restartAt - this.#parts.clock.now());
    const timer = this.#parts.clock.after(delay, () => {
      this.#timers.delete(id);
      void this.#parts.revive(id);
    });
    this.#timers.set(id, timer);
  }
}

/** Delay before a restart; undefined when there is none. */
export function delayFor({ session, handle }: Entry, now: number): number | 'never' | undefined {
  const { auto_restart, status, limited_until } = session;
  if (!auto_restart || handle.isStopping) return undefined;
  if (!['errored', 'orphaned', 'rate_limited'].includes(status)) return undefined;
  const before = inARow({ session, handle });
  if (before >= maxAutoRestarts) return 'never';
  const backoff = Math.min(maxDelayMs, firstDelayMs * 2 ** before);
  const limit = limited_until === null ? 0 : Date.parse(limited_until) - now;
  return Math.max(backoff, limit);
}

function inARow({ session, handle }: Entry): number {
  const ranMs = Date.parse(session.status_since) - handle.startedAt;
  return ranMs >= soundMs ? 0 : handle.autoRestarts;
}
