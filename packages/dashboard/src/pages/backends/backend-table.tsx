import type { DaemonSchema } from '@millrace/contract/daemon';
import { useState } from 'react';
import { daemon } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { Button, Select } from '../../parts/controls.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { words } from '../../parts/format.js';
import { useParam } from '../../parts/location.js';
import { Panel } from '../../parts/page.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';

type Backend = DaemonSchema<'BackendRow'>;
type Tier = DaemonSchema<'AssignableTier'>;
type Update = DaemonSchema<'UpdateBackendRequest'>;

const tiers: Readonly<Record<Tier, string>> = {
  free: 'free',
  subscription: 'subscription',
  pay_per_use: 'pay per use',
  unclassified: 'unclassified',
};

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
          <Button className="small" onClick={() => setScope(showsAll ? 'installed' : 'all')}>
            {showsAll ? 'Show installed only' : `Show ${missing} not installed`}
          </Button>
        )
      }
    >
      {shown.length > 0 && (
        <DataTable
          label="Backends"
          className="backends"
          columns={columns}
          rows={shown}
          rowKey={({ id }) => id}
        />
      )}
    </Panel>
  );
}

const columns: readonly DataColumn<Backend>[] = [
  { header: 'Backend', cell: (row) => <span title={row.binary_path || undefined}>{row.id}</span> },
  { header: 'Status', cell: (row) => <BackendState row={row} /> },
  {
    header: 'Tier',
    cell: (row) => (row.is_local ? <span className="muted">local</span> : <TierChoice row={row} />),
  },
  { header: 'Enabled', cell: (row) => <EnabledBox row={row} /> },
  { header: 'Default', cell: (row) => <DefaultButton row={row} /> },
];

/** What was chosen until the daemon has answered, and how to choose. */
function useUpdate({ id }: Backend) {
  const update = useAction({
    run: (body: Update) => daemon.call('updateBackend', { path: { id }, body }),
    done: (row) => `${row.id}: ${words(row.tier)}, ${row.enabled ? 'enabled' : 'disabled'}.`,
    refresh: ['registry', 'usage'],
  });
  // React puts a controlled input back at once unless its state changes inside the event;
  // the mutation's own `isPending` changes one timer later.
  const [chosen, setChosen] = useState<Update>();
  const change = (body: Update) => {
    setChosen(body);
    update.mutate(body, { onSettled: () => setChosen(undefined) });
  };
  return { chosen, disabled: chosen !== undefined, change };
}

function TierChoice({ row }: { row: Backend }) {
  const { chosen, disabled, change } = useUpdate(row);
  return (
    <Select
      aria-label={`Tier of ${row.id}`}
      value={chosen?.tier ?? row.tier}
      options={tiers}
      disabled={disabled}
      onChange={(tier) => change({ tier: tier as Tier })}
    />
  );
}

function EnabledBox({ row }: { row: Backend }) {
  const { chosen, disabled, change } = useUpdate(row);
  return (
    <input
      type="checkbox"
      className="check-box"
      aria-label={`Enable ${row.id}`}
      checked={chosen?.enabled ?? row.enabled}
      disabled={disabled}
      onChange={(event) => change({ enabled: event.target.checked })}
    />
  );
}

function DefaultButton({ row }: { row: Backend }) {
  const makeDefault = useAction({
    run: () => daemon.call('setDefaultBackend', { body: { id: row.id } }),
    done: () => `${row.id} is now the default.`,
    refresh: ['registry'],
  });
  if (row.default) return <Status tone="good">default</Status>;
  return (
    <Button
      className="small"
      disabled={!row.installed || !row.enabled || row.is_local}
      action={makeDefault}
      aria-label={`Make default: ${row.id}`}
    >
      Make default
    </Button>
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
