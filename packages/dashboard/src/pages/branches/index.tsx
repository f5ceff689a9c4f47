import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import { queries, readBranches } from '../../api/queries.js';
import { useAction } from '../../parts/action.js';
import { count, unknown } from '../../parts/format.js';
import { OutsideLink } from '../../parts/outside-link.js';
import { Page, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
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
      actions={
        <button type="button" disabled={refresh.isPending} onClick={() => refresh.mutate()}>
          {refresh.isPending ? 'Refreshing' : 'Refresh'}
        </button>
      }
    >
      <Loaded query={branches}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No agent has a branch.">
              Set a branch when you start an agent. The setting <code>branches.enabled</code> must
              be on.
            </Empty>
          ) : (
            <Panel>
              <SharedErrors branches={list} />
              <BranchTable branches={list} />
            </Panel>
          )
        }
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
  return (
    <div className="scroll-x" tabIndex={0} role="group" aria-label="Branches">
      <table role="table" className="table cards branches">
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col">
              Agent
            </th>
            <th role="columnheader" scope="col">
              Branch
            </th>
            <th role="columnheader" scope="col">
              CI
            </th>
            <th role="columnheader" scope="col" className="numeric">
              Ahead
            </th>
            <th role="columnheader" scope="col" className="numeric">
              Behind
            </th>
            <th role="columnheader" scope="col">
              Merged
            </th>
            <th role="columnheader" scope="col">
              Checked
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {branches.map((standing) => (
            <BranchRow
              key={standing.agent_id}
              standing={standing}
              showsError={standing.error !== null && !shared.has(standing.error)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function BranchRow({ standing, showsError }: { standing: Standing; showsError: boolean }) {
  const { agent_id, name, branch, base, ci, checks, ahead, behind, merged, observed_at, error } =
    standing;
  const isFar = behind !== null && behind > 10;
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        <Link href={`/agents/${agent_id}`}>{name}</Link>
      </th>
      <td role="cell" className="branches-name">
        <span className="mono">{branch ?? unknown}</span>
        <span className="muted"> on {base ?? 'an unknown base'}</span>
        {showsError && <div className="status-warn">{error}</div>}
      </td>
      <td role="cell" data-label="CI">
        <CiStatus state={ci.state} url={ci.url} />
        {checks.length > 1 && <Checks checks={checks} />}
      </td>
      <td role="cell" data-label="Ahead" className="numeric">
        {count(ahead)}
      </td>
      <td role="cell" data-label="Behind" className={isFar ? 'numeric status-warn' : 'numeric'}>
        {count(behind)}
        {isFar && ' (far behind)'}
      </td>
      <td role="cell" data-label="Merged">
        {merged === null ? <span className="muted">unknown</span> : merged ? 'yes' : 'no'}
      </td>
      <td role="cell" data-label="Checked" className="muted branches-seen">
        <Time at={observed_at} />
      </td>
    </tr>
  );
}

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
