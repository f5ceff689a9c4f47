import { now } from '../../parts/clock.js';
import { duration } from '../../parts/format.js';
import type { Task } from '../../queue/api.js';
import { timelineOf } from './timeline.js';

/** The attempts as bars on a time axis; the list below it has the details. */
export function TimelineView({ task }: { task: Task }) {
  if (task.attempts.length === 0) return null;
  const { bars, ticks } = timelineOf(task, now());
  return (
    <div className="timeline" role="img" aria-label={summaryOf(task)}>
      {bars.map(({ attempt, left, width }) => (
        <div
          key={`${attempt.redrive}.${attempt.attempt}.${attempt.started_at}`}
          className="timeline-row"
        >
          <span className="timeline-name">{nameOf(attempt)}</span>
          <span className="timeline-track">
            <span
              className={`timeline-bar timeline-${attempt.outcome.toLowerCase()}`}
              style={{ left: `${left}%`, width: `${width}%` }}
              title={`${attempt.outcome}: ${duration(attempt.duration_ms)}`}
            />
          </span>
        </div>
      ))}
      <div className="timeline-row timeline-axis">
        <span className="timeline-name" />
        <span className="timeline-track">
          {ticks.map(({ left, afterMs }) => (
            <span key={left} className="timeline-tick" style={{ left: `${left}%` }}>
              {left === 0 ? '0' : `+${duration(afterMs)}`}
            </span>
          ))}
        </span>
      </div>
    </div>
  );
}

/** `2`, or `R1 2` after the first redrive. */
const nameOf = ({ attempt, redrive }: Task['attempts'][number]): string =>
  redrive === 0 ? String(attempt) : `R${redrive} ${attempt}`;

function summaryOf({ attempts }: Task): string {
  const total = attempts.reduce((sum, { duration_ms }) => sum + duration_ms, 0);
  return `Timeline of ${attempts.length} attempts, ${duration(total)} of run time`;
}
