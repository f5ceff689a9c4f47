import { Link } from 'wouter';
import { now } from '../../parts/clock.js';
import { duration } from '../../parts/format.js';
import type { Task } from '../../queue/api.js';
import { timelineOf, type TaskHistory, type Timeline } from './timeline.js';

/** Attempts, steps, sleeps, waits and children as bars on a time axis. */
export function TimelineView({ task, history = {} }: { task: Task; history?: TaskHistory }) {
  const shownAt = now();
  const { rows, ticks } = timelineOf(task, history, shownAt);
  if (rows.length === 0) return null;
  // Attempts alone are a picture of the list below it; the rest is shown nowhere else.
  const isFlow = rows.some(({ kind }) => kind !== 'attempt');
  const [Rows, Row] = isFlow ? (['ol', 'li'] as const) : (['div', 'div'] as const);
  const label = summaryOf(task, rows);
  return (
    <div className="timeline" {...(!isFlow && { role: 'img', 'aria-label': label })}>
      <Rows className="timeline-rows" aria-label={isFlow ? label : undefined}>
        {rows.map((row) => {
          const took = duration((row.endMs ?? shownAt) - row.startMs);
          const name = row.task ? <Link href={`/tasks/${row.task}`}>{row.name}</Link> : row.name;
          return (
            <Row
              key={row.key}
              className="timeline-row"
              title={`${row.name}: ${row.state}, ${took}`}
            >
              <span className="timeline-name ellipsis">{name}</span>
              <span className="timeline-track">
                <span
                  className={`timeline-bar timeline-${row.tone} timeline-${row.kind}`}
                  style={{ left: `${row.left}%`, width: `${row.width}%` }}
                />
                <span className="visually-hidden">
                  {row.kind}, {row.state}, {took}
                </span>
              </span>
            </Row>
          );
        })}
      </Rows>
      <div className="timeline-row timeline-axis" aria-hidden="true">
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

function summaryOf({ attempts }: Task, rows: Timeline['rows']): string {
  const total = attempts.reduce((sum, { duration_ms }) => sum + duration_ms, 0);
  const others = rows.length - attempts.length;
  const more = others > 0 ? `, ${others} steps, waits and children` : '';
  return `Timeline of ${attempts.length} attempts, ${duration(total)} of run time${more}`;
}
