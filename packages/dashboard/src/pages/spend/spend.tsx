import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { queries } from '../../api/queries.js';
import { Chart } from '../../parts/chart.js';
import { useChoice } from '../../parts/choice.js';
import { dollars, dollarTicks, tokens } from '../../parts/format.js';
import { Figure, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { spentText } from '../../sessions/cost.js';
import { dayByDay } from './days.js';
import { SpendTable } from './spend-table.js';

type Rollup = DaemonSchema<'SpendRollup'>;

const groupings = {
  agent: 'Agent',
  repo: 'Repository',
  day: 'Day',
  model: 'Model',
  backend: 'Backend',
  branch: 'Branch',
  task: 'Task',
};

export function Spend() {
  const spend = useQuery(queries.spend());
  return (
    <Loaded query={spend} rows={6}>
      {(rollup) => <SpendReport rollup={rollup} />}
    </Loaded>
  );
}

function SpendReport({ rollup }: { rollup: Rollup }) {
  const [by, choice] = useChoice('by', 'agent', 'Group by', groupings);
  const rows = rollup[`by_${by}`] ?? [];
  return (
    <>
      <div className="figures">
        <Figure
          name="Today"
          value={spentText(rollup, rollup.daily_exact_usd)}
          note="list prices, cache included"
        />
        <Figure name="Last 7 days" value={spentText(rollup, rollup.weekly_exact_usd)} />
        <Figure
          name="This week"
          value={spentText(rollup, rollup.week_exact_usd)}
          note="from Monday"
        />
        <Figure
          name="All time"
          value={spentText(rollup, rollup.exact_usd)}
          note={`at the family rates: ${dollars(rollup.total_usd)}`}
        />
        <Figure
          name="Tokens"
          value={tokens(rollup.input_tokens + rollup.output_tokens)}
          note={`${tokens(rollup.input_tokens)} in, ${tokens(rollup.output_tokens)} out`}
        />
        <Figure
          name="Cache"
          value={tokens(rollup.cache_read_tokens)}
          note={`read; ${tokens(rollup.cache_write_tokens)} written`}
        />
      </div>
      <Unpriced models={rollup.unpriced_models ?? []} />
      {rollup.by_day.length === 0 ? (
        <Empty title="No spend yet.">Spend is read from the transcripts of the agents.</Empty>
      ) : (
        <div className="columns spend-columns">
          <Panel title="Spend by day">
            <DayChart days={rollup.by_day} />
          </Panel>
          <Panel title="Spend by" actions={choice}>
            <SpendTable rows={by === 'day' ? rows.toReversed() : rows} by={by} />
          </Panel>
        </div>
      )}
    </>
  );
}

/** Figures without them would look complete. */
function Unpriced({ models }: { models: readonly string[] }) {
  if (models.length === 0) return null;
  return (
    <p className="muted">
      No price is known of {models.join(', ')}: their tokens are counted, their dollars are not.
    </p>
  );
}

function DayChart({ days }: { days: Rollup['by_day'] }) {
  const shown = dayByDay(days.map(({ key, exact_usd: usd = null }) => ({ key, usd })));
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
