import { Chart } from '../../parts/chart.js';
import { count } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { historyMs, type Sample } from './rates.js';

type Figure = Exclude<keyof Sample, 'at'>;

// Keeps the axis readable when all values are 0.
const minTop = 4;

/** Queue depth over time, sampled while the queue pages are open. */
export function Depth({ samples }: { samples: readonly Sample[] }) {
  const last = samples.at(-1);
  if (!last) return null;
  const begin = last.at - historyMs;
  // Null, not 0: nothing is known before the first sample.
  const values = (figure: Figure) => [null, ...samples.map((sample) => sample[figure])];
  const highest = Math.max(
    ...samples.flatMap(({ pending, inFlight, dead }) => [pending, inFlight, dead]),
  );
  return (
    <Panel title="Depth" actions={<span className="muted">recorded while the tab is open</span>}>
      <div className="panel-body">
        <Chart
          label="Tasks in the queue, last 15 minutes"
          times={[begin, ...samples.map(({ at }) => at)].map((at) => at / 1000)}
          series={[
            { label: 'pending', values: values('pending'), kind: 'area' },
            { label: 'in flight', values: values('inFlight') },
            { label: 'dead', values: values('dead') },
          ]}
          format={count}
          height={160}
          {...(highest < minTop && { max: minTop })}
        />
      </div>
    </Panel>
  );
}
