import type { DaemonSchema } from '@millrace/contract/daemon';
import { useMemo } from 'react';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { Status } from '../../parts/status.js';
import { layoutDag, type DagNode } from './layout.js';
import { jobTones } from './tones.js';

type Job = DaemonSchema<'Job'>;

// Two boxes side by side fit a phone.
const box = { width: 160, height: 52 };
const gap = { along: 56, across: 16 };
const edge = 12;

/** Draws the jobs and their dependencies: left to right, or top to bottom on a phone. */
export function Dag({
  jobs,
  selected,
  onSelect,
}: {
  jobs: readonly Job[];
  selected: string | undefined;
  onSelect: (id: string) => void;
}) {
  const isDown = useIsNarrow();
  const layout = useMemo(() => layoutDag(jobs), [jobs]);
  const nodes = new Map(layout.nodes.map((node) => [node.id, corner(node, isDown)]));
  const along = isDown ? box.height : box.width;
  const across = isDown ? box.width : box.height;
  const length = layout.layers * (along + gap.along) - gap.along + 2 * edge;
  const breadth = layout.breadth * (across + gap.across) - gap.across + 2 * edge;
  const size = isDown ? { width: breadth, height: length } : { width: length, height: breadth };
  return (
    <div className="dag" tabIndex={0} role="group" aria-label="Jobs and their dependencies">
      <div className="dag-space" style={size}>
        <svg {...size} aria-hidden="true">
          {layout.edges.map(({ from, to }) => (
            <path
              key={`${from} ${to}`}
              className={from === selected || to === selected ? 'dag-edge dag-edge-on' : 'dag-edge'}
              d={curve(nodes.get(from)!, nodes.get(to)!, isDown)}
            />
          ))}
        </svg>
        {jobs.map((job) => {
          const { x, y } = nodes.get(job.id)!;
          return (
            <button
              key={job.id}
              type="button"
              className={`dag-job dag-${jobTones[job.status]}`}
              style={{ left: x, top: y, ...box }}
              aria-pressed={job.id === selected}
              title={job.id}
              onClick={() => onSelect(job.id)}
            >
              <span className="ellipsis dag-name">{job.id}</span>
              <Status tone={jobTones[job.status]}>{job.status}</Status>
              {job.depends_on.length > 0 && (
                <span className="visually-hidden">
                  {' '}
                  after {job.depends_on.join(', ')}, on {job.run_if}
                </span>
              )}
            </button>
          );
        })}
      </div>
    </div>
  );
}

interface Place {
  x: number;
  y: number;
}

function corner({ layer, place }: DagNode, isDown: boolean): Place {
  if (isDown) {
    return {
      x: edge + place * (box.width + gap.across),
      y: edge + layer * (box.height + gap.along),
    };
  }
  return { x: edge + layer * (box.width + gap.along), y: edge + place * (box.height + gap.across) };
}

function curve(from: Place, to: Place, isDown: boolean): string {
  if (isDown) {
    const [x1, y1] = [from.x + box.width / 2, from.y + box.height];
    const [x2, y2] = [to.x + box.width / 2, to.y];
    const half = (y1 + y2) / 2;
    return `M${x1} ${y1}C${x1} ${half} ${x2} ${half} ${x2} ${y2}`;
  }
  const [x1, y1] = [from.x + box.width, from.y + box.height / 2];
  const [x2, y2] = [to.x, to.y + box.height / 2];
  const half = (x1 + x2) / 2;
  return `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}`;
}
