import { Chart } from '../../parts/chart.js';
import { count } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { keptMs, type Sample } from './rates.js';

type Figure = Exclude<keyof Sample, 'at'>;

// An axis that ends at nothing has nothing to show.
const leastTop = 4;

/** How the queue has filled and drained while its pages were open. */
export function Depth({ samples }: { samples: readonly Sample[] }) {
  const last = samples.at(-1);
  if (!last) return null;
  const begin = last.at - keptMs;
  // Before the first sight nothing is known, which is not the same as nothing being there.
  const values = (figure: Figure) => [null, ...samples.map((sample) => sample[figure])];
  const highest = Math.max(
    ...samples.flatMap(({ pending, inFlight, dead }) => [pending, inFlight, dead]),
  );
  return (
    <Panel title="Depth">
      <div className="panel-body">
        <Chart
          label="Tasks of the queue, the last 15 minutes"
          times={[begin, ...samples.map(({ at }) => at)].map((at) => at / 1000)}
          series={[
            { label: 'pending', values: values('pending'), kind: 'area' },
            { label: 'in flight', values: values('inFlight') },
            { label: 'dead', values: values('dead') },
          ]}
          format={count}
          height={160}
          {...(highest < leastTop && { max: leastTop })}
        />
      </div>
    </Panel>
  );
}
