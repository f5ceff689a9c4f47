import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import { queries, readBranches } from '../../api/queries.js';
import { useAction } from '../../parts/action.js';
import { Button } from '../../parts/controls.js';
import { DataTable, listColumns } from '../../parts/data-table.js';
import { count, unknown } from '../../parts/format.js';
import { OutsideLink } from '../../parts/outside-link.js';
import { Page, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { sharedErrors } from './problems.js';
import './branches.css';

type Standing = DaemonSchema<'BranchStanding'>;
type CiState = NonNullable<Standing['ci']['state']>;

/** CI status and distance from the base, for the branch of each agent. */
export default function BranchesPage() {
  const branches = useQuery(queries.branches());
  const client = useQueryClient();
  const refresh = useAction({
    run: () => readBranches(true),
    done: () => 'Branches refreshed.',
    onDone: (list) => client.setQueryData(queries.branches().queryKey, list),
  });
  return (
    <Page
      title="Branches"
      actions={<Button action={refresh}>{refresh.isPending ? 'Refreshing' : 'Refresh'}</Button>}
    >
      <Loaded
        query={branches}
        empty={
          <Empty title="No agent has a branch.">
            Set a branch when you start an agent. The setting <code>branches.enabled</code> must be
            on.
          </Empty>
        }
      >
        {(list) => (
          <Panel>
            <SharedErrors branches={list} />
            <BranchTable branches={list} />
          </Panel>
        )}
      </Loaded>
    </Page>
  );
}

function SharedErrors({ branches }: { branches: readonly Standing[] }) {
  const shared = sharedErrors(branches);
  if (shared.length === 0) return null;
  return (
    <ul className="panel-body branches-errors">
      {shared.map(({ error, count: size }) => (
        <li key={error}>
          <Status tone="warn">warning</Status> {error} ({size} branches)
        </li>
      ))}
    </ul>
  );
}

function BranchTable({ branches }: { branches: readonly Standing[] }) {
  const shared = new Set(sharedErrors(branches).map(({ error }) => error));
  const columns = listColumns(daemonLists.branches, {
    Agent: { cell: ({ agent_id: id, name }) => <Link href={`/agents/${id}`}>{name}</Link> },
    Branch: {
      isUnlabelled: true,
      className: 'branches-name',
      cell: (row) => {
        const { branch, base, error } = row;
        return (
          <>
            <span className="mono">{branch ?? unknown}</span>
            {!isBase(row) && <span className="muted"> on {base ?? 'an unknown base'}</span>}
            {error !== null && !shared.has(error) && <div className="status-warn">{error}</div>}
          </>
        );
      },
    },
    CI: {
      cell: ({ ci, checks }) => (
        <>
          <CiStatus state={ci.state} url={ci.url} />
          {checks.length > 1 && <Checks checks={checks} />}
        </>
      ),
    },
    Ahead: { numeric: true, cell: (row) => (isBase(row) ? unknown : count(row.ahead)) },
    Behind: {
      numeric: true,
      className: (row) => (isFar(row) ? 'status-warn' : undefined),
      cell: (row) => (
        <>
          {isBase(row) ? unknown : count(row.behind)}
          {isFar(row) && ' (far behind)'}
        </>
      ),
    },
    Merged: {
      cell: (row) =>
        isBase(row) ? (
          <span className="muted">works on the base</span>
        ) : row.merged === null ? (
          <span className="muted">unknown</span>
        ) : row.merged ? (
          'yes'
        ) : (
          'no'
        ),
    },
    Checked: { className: 'muted branches-seen' },
  });
  return (
    <DataTable
      label="Branches"
      className="branches"
      columns={columns}
      rows={branches}
      rowKey={({ agent_id: id }) => id}
    />
  );
}

/** A branch has no distance from itself. */
const isBase = ({ branch, base }: Standing) => branch !== null && branch === base;

const isFar = ({ behind }: Standing) => behind !== null && behind > daemonLists.farBehind;

const ciTones: Readonly<Record<CiState, Tone>> = {
  success: 'good',
  failure: 'bad',
  pending: 'busy',
  none: 'off',
};

function CiStatus({ state, url }: { state: Standing['ci']['state']; url: string | null }) {
  const shown =
    state === null ? (
      <Status tone="off">unknown</Status>
    ) : (
      <Status tone={ciTones[state]}>{state === 'none' ? 'no run' : state}</Status>
    );
  return <OutsideLink href={url}>{shown}</OutsideLink>;
}

function Checks({ checks }: { checks: Standing['checks'] }) {
  return (
    <details className="branches-checks">
      <summary className="muted">{checks.length} runs</summary>
      <ul>
        {checks.map(({ name, state, url }, index) => (
          <li key={`${name} ${index}`}>
            <CiStatus state={state} url={url} /> {name}
          </li>
        ))}
      </ul>
    </details>
  );
}
