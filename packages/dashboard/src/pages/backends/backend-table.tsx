import type { DaemonSchema } from '@millrace/contract/daemon';
import { useState } from 'react';
import { daemon } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { words } from '../../parts/format.js';
import { useParam } from '../../parts/location.js';
import { Panel } from '../../parts/page.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';

type Backend = DaemonSchema<'BackendRow'>;
type Tier = DaemonSchema<'AssignableTier'>;

const tiers: readonly Tier[] = ['free', 'subscription', 'pay_per_use', 'unclassified'];

export function BackendTable({ backends }: { backends: readonly Backend[] }) {
  const [scope, setScope] = useParam<'installed' | 'all'>('show', 'installed', [
    'installed',
    'all',
  ]);
  const showsAll = scope === 'all';
  const installed = backends.filter((row) => row.installed);
  const missing = backends.length - installed.length;
  const shown = showsAll ? backends : installed;
  return (
    <Panel
      title="Backends"
      actions={
        missing > 0 && (
          <button
            type="button"
            className="small"
            onClick={() => setScope(showsAll ? 'installed' : 'all')}
          >
            {showsAll ? 'Show installed only' : `Show ${missing} not installed`}
          </button>
        )
      }
    >
      <div
        className="scroll-x"
        tabIndex={0}
        role="group"
        aria-label="Backends"
        hidden={shown.length === 0}
      >
        <table role="table" className="table cards backends">
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader" scope="col">
                Backend
              </th>
              <th role="columnheader" scope="col">
                Status
              </th>
              <th role="columnheader" scope="col">
                Tier
              </th>
              <th role="columnheader" scope="col">
                Enabled
              </th>
              <th role="columnheader" scope="col">
                Default
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {shown.map((row) => (
              <BackendRow key={row.id} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function BackendRow({ row }: { row: Backend }) {
  const update = useAction({
    run: (body: DaemonSchema<'UpdateBackendRequest'>) =>
      daemon.call('updateBackend', { path: { id: row.id }, body }),
    done: ({ id, tier, enabled }) => `${id}: ${words(tier)}, ${enabled ? 'enabled' : 'disabled'}.`,
    refresh: ['registry', 'usage'],
  });
  // React puts a controlled input back at once unless its state changes inside the event;
  // the mutation's own `isPending` changes one timer later.
  const [chosen, setChosen] = useState<DaemonSchema<'UpdateBackendRequest'>>();
  const change = (body: DaemonSchema<'UpdateBackendRequest'>) => {
    setChosen(body);
    update.mutate(body, { onSettled: () => setChosen(undefined) });
  };
  const makeDefault = useAction({
    run: () => daemon.call('setDefaultBackend', { body: { id: row.id } }),
    done: () => `${row.id} is now the default.`,
    refresh: ['registry'],
  });
  return (
    <tr role="row">
      <th role="rowheader" scope="row" title={row.binary_path || undefined}>
        {row.id}
      </th>
      <td role="cell" data-label="Status">
        <BackendState row={row} />
      </td>
      <td role="cell" data-label="Tier">
        {row.is_local ? (
          <span className="muted">local</span>
        ) : (
          <select
            aria-label={`Tier of ${row.id}`}
            value={chosen?.tier ?? row.tier}
            disabled={chosen !== undefined}
            onChange={(event) => change({ tier: event.target.value as Tier })}
          >
            {tiers.map((tier) => (
              <option key={tier} value={tier}>
                {words(tier)}
              </option>
            ))}
          </select>
        )}
      </td>
      <td role="cell" data-label="Enabled">
        <input
          type="checkbox"
          className="check-box"
          aria-label={`Enable ${row.id}`}
          checked={chosen?.enabled ?? row.enabled}
          disabled={chosen !== undefined}
          onChange={(event) => change({ enabled: event.target.checked })}
        />
      </td>
      <td role="cell" data-label="Default">
        {row.default ? (
          <Status tone="good">default</Status>
        ) : (
          <button
            type="button"
            className="small"
            disabled={!row.installed || !row.enabled || row.is_local || makeDefault.isPending}
            aria-label={`Make default: ${row.id}`}
            onClick={() => makeDefault.mutate()}
          >
            Make default
          </button>
        )}
      </td>
    </tr>
  );
}

function BackendState({ row }: { row: Backend }) {
  if (!row.installed) return <Status tone="off">not installed</Status>;
  if (!row.enabled) return <Status tone="off">disabled</Status>;
  if (row.limited_until) {
    return (
      <span>
        <Status tone="warn">limited</Status> <Time at={row.limited_until} />
      </span>
    );
  }
  return <Status tone="good">ready</Status>;
}
