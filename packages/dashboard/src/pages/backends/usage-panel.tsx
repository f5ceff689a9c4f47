import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { queries, readUsage } from '../../api/queries.js';
import { useAction } from '../../parts/action.js';
import { Bar } from '../../parts/bar.js';
import { Button } from '../../parts/controls.js';
import { percent } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { Time } from '../../parts/time.js';

type Usage = DaemonSchema<'BackendUsage'>;
type Limit = DaemonSchema<'UsageLimit'>;

const tones: Readonly<Record<Usage['status'], Tone>> = {
  ok: 'good',
  rate_limited: 'bad',
  unsupported: 'off',
  unauthenticated: 'warn',
  unavailable: 'warn',
  timeout: 'warn',
  error: 'bad',
  not_installed: 'off',
};

/** Usage limits as reported by the providers. */
export function UsagePanel() {
  const usage = useQuery(queries.usage());
  const client = useQueryClient();
  const refresh = useAction({
    run: () => readUsage(true),
    done: () => 'Usage refreshed.',
    onDone: (document) => client.setQueryData(queries.usage().queryKey, document),
  });
  return (
    <Panel
      title="Usage windows"
      actions={
        <>
          {usage.data && (
            <span className="muted">
              updated <Time at={usage.data.generated_at} />
            </span>
          )}
          <Button className="small" action={refresh}>
            {refresh.isPending ? 'Refreshing' : 'Refresh'}
          </Button>
        </>
      }
    >
      <Loaded query={usage} rows={3}>
        {({ backends }) =>
          backends.length === 0 ? (
            <Empty title="No backend with the tier subscription.">
              Only subscriptions have usage windows. Set the tier of a backend in the table below.
            </Empty>
          ) : (
            <ul className="usage">
              {backends.map((backend) => (
                <BackendUsage key={backend.id} backend={backend} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function BackendUsage({ backend }: { backend: Usage }) {
  const { id, status, usage, error, observed_at, last_good } = backend;
  return (
    <li className="usage-backend">
      <div className="row">
        <h3>{id}</h3>
        <Status tone={tones[status]}>{status}</Status>
        {observed_at !== null && (
          <span className="muted">
            reported <Time at={observed_at} />
          </span>
        )}
      </div>
      {error && <p className="muted">{error}</p>}
      {usage.map((limit) => (
        <Window
          key={limit.id}
          limit={limit}
          last={last_good?.usage.find((one) => one.id === limit.id)}
          lastSeen={last_good?.observed_at}
        />
      ))}
      {usage.length === 0 && <p className="muted">{noWindows[status] ?? 'No windows reported.'}</p>}
    </li>
  );
}

const noWindows: Partial<Record<Usage['status'], string>> = {
  unsupported: 'This provider does not report usage.',
  unauthenticated: 'Log in with its command line, then refresh.',
  not_installed: 'Its command line is not installed.',
};

function Window({
  limit,
  last,
  lastSeen,
}: {
  limit: Limit;
  last: Limit | undefined;
  lastSeen: string | undefined;
}) {
  const { label, used_percent: used, resets_at, models, forecast } = limit;
  const tone = used === null ? undefined : used >= 100 ? 'bad' : used >= 80 ? 'warn' : undefined;
  const text = used === null ? 'unknown' : percent(used);
  return (
    <div className="usage-window">
      <span className="usage-label" title={models?.join(', ')}>
        {label}
      </span>
      <Bar label={`${label} ${text} used`} percent={used} tone={tone} />
      <span className={used === null ? 'numeric muted' : 'numeric'}>{text}</span>
      <span className="usage-reset muted">
        {resets_at === null ? (
          'reset unknown'
        ) : (
          <>
            resets <Time at={resets_at} />
          </>
        )}
      </span>
      {forecast && (
        <span className="usage-last status-warn">
          full <Time at={forecast.full_at} /> at this rate
        </span>
      )}
      {used === null && last && last.used_percent !== null && (
        <span className="usage-last muted">
          was {percent(last.used_percent)}, reported <Time at={lastSeen} />
        </span>
      )}
    </div>
  );
}
