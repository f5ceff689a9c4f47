import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { queries } from '../../api/queries.js';
import { Chart } from '../../parts/chart.js';
import { useChoice } from '../../parts/choice.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { count, dollars, percent, tokens, words } from '../../parts/format.js';
import { Figure, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';

type Report = DaemonSchema<'SavingsReport'>;

const windows = {
  '24h': '24 hours',
  '48h': '48 hours',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
};

/** Two separate figures: context tokens saved, and work offloaded to the local model. */
export function Savings() {
  const [window, choice] = useChoice('range', '7d', 'Window', windows);
  const bucket = window === '24h' || window === '48h' ? 'hour' : 'day';
  const savings = useQuery({
    ...queries.savings(window, bucket),
    placeholderData: (before) => before,
  });
  return (
    <>
      <div className="row savings-head">
        <h2>Savings</h2>
        {choice}
      </div>
      <Loaded query={savings} rows={6}>
        {(report) =>
          report.events === 0 ? (
            <Empty title="No savings in this window.">
              Run builds and tests with <code>ctl check -- npm test</code> and git with{' '}
              <code>ctl git</code>: agents then read condensed output.
            </Empty>
          ) : (
            <SavingsReport report={report} />
          )
        }
      </Loaded>
    </>
  );
}

function SavingsReport({ report }: { report: Report }) {
  const { axes, buckets = [], bucket_granularity: width = 'day' } = report;
  const times = buckets.map(({ ts }) => ts);
  return (
    <div className="columns">
      <Panel title="Context: tokens saved" actions={<Basis report={report} />}>
        <div className="savings-figures">
          <Figure name="Saved" value={tokens(axes.context.saved_tokens)} note="tokens" />
          <Figure name="Reduction" value={percent(axes.context.reduction_pct)} />
          <Figure
            name="Value"
            value={dollars(axes.context.saved_dollars)}
            note="at the highest rate"
          />
          <Figure
            name="Raw"
            value={tokens(axes.context.raw_tokens)}
            note={`${tokens(axes.context.kept_tokens)} sent to the model`}
          />
        </div>
        <Chart
          label={`Tokens saved by ${width}`}
          times={times}
          series={[
            { label: 'Saved', kind: 'bars', values: buckets.map((one) => one.saved_tokens) },
          ]}
          format={tokens}
        />
        <Chart
          label="Tokens saved, running total"
          times={times}
          height={110}
          series={[
            { label: 'Running total', kind: 'area', values: buckets.map((one) => one.cumulative) },
          ]}
          format={tokens}
        />
        <Features report={report} />
      </Panel>
      <Panel title="Offload: work done by the local model">
        <div className="savings-figures">
          <Figure name="Value" value={dollars(axes.offload.dollars)} note="at the highest rates" />
          <Figure name="Processed" value={tokens(axes.offload.tokens)} note="tokens" />
          <Figure name="Requests" value={count(axes.offload.events)} />
        </div>
        <Chart
          label={`Tokens offloaded by ${width}`}
          times={times}
          series={[
            {
              label: 'Offloaded',
              kind: 'bars',
              values: buckets.map(({ by_feature }) => by_feature['llm_offload'] ?? 0),
            },
          ]}
          format={tokens}
        />
        <p className="panel-body muted">
          Counted separately: these tokens were never meant for a cloud model, so the context
          figures do not include them.
        </p>
      </Panel>
    </div>
  );
}

function Basis({ report }: { report: Report }) {
  const ratio = report.calibrated_bytes_per_token;
  const text =
    report.basis === 'CALIBRATED' && ratio !== null
      ? `calibrated: ${ratio.toFixed(2)} bytes per token`
      : 'heuristic: 4 bytes per token';
  return <span className="muted">{text}</span>;
}

function Features({ report }: { report: Report }) {
  const rows = report.features.filter(({ feature }) => feature !== 'llm_offload');
  if (rows.length === 0) return null;
  return (
    <DataTable
      label="Savings by feature"
      isCards={false}
      columns={columns}
      rows={rows}
      rowKey={({ feature }) => feature}
    />
  );
}

const columns: readonly DataColumn<Report['features'][number]>[] = [
  { header: 'Feature', cell: ({ feature }) => words(feature) },
  { header: 'Events', numeric: true, cell: ({ events }) => count(events) },
  { header: 'Raw', numeric: true, cell: ({ raw_tokens: raw }) => tokens(raw) },
  { header: 'Saved', numeric: true, cell: ({ saved_tokens: saved }) => tokens(saved) },
];
