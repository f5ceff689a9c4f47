import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { queries } from '../../api/queries.js';
import { Chart } from '../../parts/chart.js';
import { Choice } from '../../parts/choice.js';
import { dollars, dollarTicks, tokens } from '../../parts/format.js';
import { useParam } from '../../parts/location.js';
import { Figure, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { dayByDay } from './days.js';
import { SpendTable } from './spend-table.js';

type Rollup = DaemonSchema<'SpendRollup'>;
type By = 'agent' | 'repo' | 'day' | 'model' | 'backend';

const groupings: readonly { value: By; text: string }[] = [
  { value: 'agent', text: 'Agent' },
  { value: 'repo', text: 'Repository' },
  { value: 'day', text: 'Day' },
  { value: 'model', text: 'Model' },
  { value: 'backend', text: 'Backend' },
];

const groupingValues = groupings.map(({ value }) => value);

export function Spend() {
  const spend = useQuery(queries.spend());
  return (
    <Loaded query={spend} rows={6}>
      {(rollup) => <SpendReport rollup={rollup} />}
    </Loaded>
  );
}

function SpendReport({ rollup }: { rollup: Rollup }) {
  const [by, setBy] = useParam<By>('by', 'agent', groupingValues);
  const rows = rollup[`by_${by}`];
  return (
    <>
      <div className="figures">
        <Figure name="Today" value={dollars(rollup.daily_usd)} note="local day" />
        <Figure name="Last 7 days" value={dollars(rollup.weekly_usd)} />
        <Figure name="This week" value={dollars(rollup.week_usd)} note="from Monday" />
        <Figure name="All time" value={dollars(rollup.total_usd)} />
        <Figure
          name="Exact, all time"
          value={typeof rollup.exact_usd === 'number' ? dollars(rollup.exact_usd) : 'unknown'}
          note="list prices, cache included"
        />
        <Figure
          name="Tokens"
          value={tokens(rollup.input_tokens + rollup.output_tokens)}
          note={`${tokens(rollup.input_tokens)} in, ${tokens(rollup.output_tokens)} out`}
        />
        <Figure
          name="Cache"
          value={dollars(rollup.cache_usd)}
          note={`not included; ${tokens(rollup.cache_read_tokens)} read, ${tokens(rollup.cache_write_tokens)} written`}
        />
      </div>
      {rollup.by_day.length === 0 ? (
        <Empty title="No spend yet.">Spend is read from the transcripts of the agents.</Empty>
      ) : (
        <div className="columns spend-columns">
          <Panel title="Spend by day">
            <DayChart days={rollup.by_day} />
          </Panel>
          <Panel
            title="Spend by"
            actions={<Choice label="Group by" value={by} options={groupings} onChange={setBy} />}
          >
            <SpendTable rows={by === 'day' ? rows.toReversed() : rows} by={by} />
          </Panel>
        </div>
      )}
    </>
  );
}

function DayChart({ days }: { days: Rollup['by_day'] }) {
  const shown = dayByDay(days);
  return (
    <Chart
      label="Dollars by day"
      times={shown.map(({ time }) => time)}
      series={[{ label: 'Dollars', kind: 'bars', values: shown.map(({ usd }) => usd) }]}
      format={dollars}
      formatTicks={dollarTicks}
    />
  );
}
