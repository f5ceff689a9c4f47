import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { DefinitionDialog } from '../../parts/definition-dialog.js';
import { Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { VirtualTable, type Column } from '../../parts/virtual-table.js';
import { PlanView } from './plan-view.js';
import { planTones } from './race.js';
import './plans.css';

type Plan = DaemonSchema<'Plan'>;

const example = `title: Retry uploads
repo: /path/to/repository
tasks:
  - key: upload
    prompt: Retry an upload once, with a test.
    race: [claude, codex]
    verify: npm test
    review: { by: claude, rounds: 2 }
    merge: ask
  - key: docs
    prompt: Describe the new behaviour.
    depends_on: [upload]
`;

export default function PlansPage({ params }: { params: Readonly<Record<string, string>> }) {
  const plans = useQuery(queries.plans());
  const [isCreating, setIsCreating] = useState(false);
  useShortcut('n', 'New plan', () => setIsCreating(true));
  return (
    <Page
      title="Plans"
      actions={
        <button type="button" className="primary" onClick={() => setIsCreating(true)}>
          New plan
        </button>
      }
    >
      <Loaded query={plans}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No plans yet.">
              A plan is a set of tasks that agents do, with checks, reviews and a merge gate. Create
              one here, or with <code>ctl agent plan plan.yaml</code>.
            </Empty>
          ) : (
            <Plans plans={list} id={params['id']} />
          )
        }
      </Loaded>
      {isCreating && (
        <DefinitionDialog
          kind="plan"
          list="plans"
          example={example}
          hint="YAML or JSON. Tasks that wait for nothing start at once."
          onClose={() => setIsCreating(false)}
        />
      )}
    </Page>
  );
}

const columns: readonly Column<Plan>[] = [
  {
    id: 'title',
    header: 'Plan',
    width: 'minmax(0, 1fr)',
    cell: ({ id, title }) => (
      <Link href={`/plans/${id}`} className="row-link">
        {title}
      </Link>
    ),
  },
  {
    id: 'status',
    header: 'Status',
    width: '6rem',
    cell: ({ status }) => <Status tone={planTones[status]}>{status}</Status>,
  },
  {
    id: 'tasks',
    header: 'Tasks',
    width: '4rem',
    numeric: true,
    cell: ({ tasks }) => `${tasks.filter((task) => task.status === 'done').length}/${tasks.length}`,
  },
  {
    id: 'changed',
    header: 'Updated',
    width: '6.5rem',
    wideOnly: true,
    cell: ({ updated_at: at }) => at && <Time at={at} />,
  },
];

function Plans({ plans, id }: { plans: readonly Plan[]; id: string | undefined }) {
  const chosen = id === undefined ? plans[0] : plans.find((one) => one.id === id);
  return (
    <>
      <div className="plans-list">
        <VirtualTable
          label="Plans"
          columns={columns}
          rows={plans}
          rowKey={(plan) => plan.id}
          rowHeight={36}
          narrowRowHeight={44}
          selectedKey={chosen?.id}
        />
      </div>
      {chosen ? (
        <PlanView key={chosen.id} plan={chosen} />
      ) : (
        <Empty title="This plan does not exist.">
          <Link href="/plans">Show the newest plan</Link>
        </Empty>
      )}
    </>
  );
}
