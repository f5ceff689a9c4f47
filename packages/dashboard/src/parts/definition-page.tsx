import { ApiError } from '@millrace/client';
import type { UseQueryResult } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { authorizedFetch } from '../api/client.js';
import { useAction } from './action.js';
import { FormDialog } from './form-dialog.js';
import { Page } from './page.js';
import { useShortcut } from './shortcuts.js';
import { Empty, Loaded } from './states.js';
import { Status, type Tone } from './status.js';
import { Time } from './time.js';
import { VirtualTable, type Column } from './virtual-table.js';
import './definition-page.css';

interface Row {
  id: string;
  status: string;
  updated_at?: string;
}

interface DefinitionPageProps<R extends Row> {
  title: string;
  /** Such as `pipeline`. */
  kind: string;
  /** Below `/api/v1`, the page and the query, such as `pipelines`. */
  list: string;
  example: string;
  hint: ReactNode;
  /** What to do when there are none. */
  empty: ReactNode;
  query: UseQueryResult<R[]>;
  /** Of the selected row; without it the newest is shown. */
  id: string | undefined;
  nameOf: (row: R) => string;
  tones: Readonly<Record<R['status'], Tone>>;
  /** The header of the column of parts, and `done/all` of a row. */
  parts: readonly [header: string, count: (row: R) => string];
  view: (row: R) => ReactNode;
}

/** Pipelines or plans: the list, the selected one, and a form for a new one. */
export function DefinitionPage<R extends Row>(props: DefinitionPageProps<R>) {
  const { title, kind, query, empty } = props;
  const [isCreating, setIsCreating] = useState(false);
  useShortcut('n', `New ${kind}`, () => setIsCreating(true));
  return (
    <Page
      title={title}
      actions={
        <button type="button" className="primary" onClick={() => setIsCreating(true)}>
          New {kind}
        </button>
      }
    >
      <Loaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title={`No ${kind}s yet.`}>{empty}</Empty>
          ) : (
            <Rows {...props} rows={rows} />
          )
        }
      </Loaded>
      {isCreating && <DefinitionDialog {...props} onClose={() => setIsCreating(false)} />}
    </Page>
  );
}

function Rows<R extends Row>(props: DefinitionPageProps<R> & { rows: readonly R[] }) {
  const { rows, id, title, kind, list, view } = props;
  const chosen = id === undefined ? rows[0] : rows.find((row) => row.id === id);
  return (
    <>
      <div className="work-list">
        <VirtualTable
          label={title}
          columns={columnsOf(props)}
          rows={rows}
          rowKey={(row) => row.id}
          rowHeight={36}
          narrowRowHeight={44}
          selectedKey={chosen?.id}
        />
      </div>
      {chosen ? (
        view(chosen)
      ) : (
        <Empty title={`This ${kind} does not exist.`}>
          <Link href={`/${list}`}>Show the newest {kind}</Link>
        </Empty>
      )}
    </>
  );
}

function columnsOf<R extends Row>(props: DefinitionPageProps<R>): readonly Column<R>[] {
  const { list, title, nameOf, tones, parts } = props;
  return [
    {
      id: 'name',
      header: title.slice(0, -1),
      width: 'minmax(0, 1fr)',
      cell: (row) => (
        <Link href={`/${list}/${row.id}`} className="row-link">
          {nameOf(row)}
        </Link>
      ),
    },
    {
      id: 'status',
      header: 'Status',
      width: '6rem',
      cell: ({ status }: R) => <Status tone={tones[status as R['status']]}>{status}</Status>,
    },
    { id: 'parts', header: parts[0], width: '4rem', numeric: true, cell: parts[1] },
    {
      id: 'changed',
      header: 'Updated',
      width: '6.5rem',
      wideOnly: true,
      cell: ({ updated_at: at }) => at && <Time at={at} />,
    },
  ];
}

type DialogProps = Pick<DefinitionPageProps<Row>, 'kind' | 'list' | 'example' | 'hint'> & {
  onClose: () => void;
};

/** Creates a pipeline or a plan from YAML or JSON. */
function DefinitionDialog({ kind, list, example, hint, onClose }: DialogProps) {
  const [, navigate] = useLocation();
  const create = useAction({
    run: (text: string) => createFrom(`/api/v1/${list}`, text),
    done: ({ name, title }) => `Created ${name ?? title}.`,
    refresh: [list],
    onDone: ({ id }) => {
      onClose();
      navigate(`/${list}/${id}`);
    },
    // Shown in the form.
    onFailed: () => true,
  });
  return (
    <FormDialog
      wide
      title={`New ${kind}`}
      submitLabel={`Create ${kind}`}
      busy={create.isPending}
      error={create.error}
      onSubmit={(form) => create.mutate(String(form.get('text')))}
      onClose={onClose}
    >
      <label className="field">
        Definition
        <textarea name="text" className="mono" rows={14} required defaultValue={example} />
        <span className="field-hint">{hint}</span>
      </label>
    </FormDialog>
  );
}

interface Created {
  id: string;
  name?: string;
  title?: string;
}

/** Sends the text as it is: the daemon parses YAML, and JSON is YAML. */
async function createFrom(path: string, text: string): Promise<Created> {
  const response = await authorizedFetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/yaml' },
    body: text,
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new ApiError(response.status, body);
  return body as Created;
}
