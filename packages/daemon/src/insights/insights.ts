import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import { parseSince } from '../core/since.js';
import { hoursIn } from '../spend/local-day.js';
import type { Spend } from '../spend/spend.js';
import { mineInsights } from './mine.js';
import { withOwnSessions } from './own-sessions.js';
import { sessionsOf } from './sessions.js';

export interface InsightsParts {
  clock: Clock;
  spend: Pick<Spend, 'tally'>;
}

/** Patterns in the history of sessions, from their transcripts and from the daemon itself. */
export class Insights {
  constructor(private readonly parts: InsightsParts) {}

  /** Sessions started at `since` or later; `own` are those of the daemon. */
  async read(
    since: string | undefined,
    own: () => Promise<readonly DaemonSchema<'Session'>[]>,
  ): Promise<DaemonSchema<'Insights'>> {
    const { clock, spend } = this.parts;
    const from = since === undefined ? undefined : parseSince(since, clock.now());
    const tally = await spend.tally();
    const now = clock.now();
    const sessions = withOwnSessions(sessionsOf(tally), await own(), now);
    return mineInsights(sessions, { since: from, now, hourOf: hoursIn() });
  }
}
