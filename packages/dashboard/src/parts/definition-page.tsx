import { ApiError } from '@millrace/client';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { authorizedFetch } from '../api/client.js';
import { Confirm } from './confirm.js';
import { DialogButton, Field } from './controls.js';
import { Page } from './page.js';
import { Empty, Loaded } from './states.js';
import { Status, type Tone } from './status.js';
import { Time } from './time.js';
import { column, VirtualTable, type Column } from './virtual-table.js';
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
  return (
    <Page
      title={title}
      actions={
        <DialogButton className="primary" label={`New ${kind}`} shortcut="n">
          {(onClose) => <DefinitionDialog {...props} onClose={onClose} />}
        </DialogButton>
      }
    >
      <Loaded query={query} empty={<Empty title={`No ${kind}s yet.`}>{empty}</Empty>}>
        {(rows) => <Rows {...props} rows={rows} />}
      </Loaded>
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
  const name = (row: R) => (
    <Link href={`/${list}/${row.id}`} className="row-link">
      {nameOf(row)}
    </Link>
  );
  return [
    column(title.slice(0, -1), 'minmax(0, 1fr)', name),
    column('Status', '6rem', ({ status }: R) => (
      <Status tone={tones[status as R['status']]}>{status}</Status>
    )),
    column(parts[0], '4rem', parts[1], { numeric: true }),
    column('Updated', '6.5rem', ({ updated_at: at }) => at && <Time at={at} />, { wideOnly: true }),
  ];
}

type DialogProps = Pick<DefinitionPageProps<Row>, 'kind' | 'list' | 'example' | 'hint'> & {
  onClose: () => void;
};

/** Creates a pipeline or a plan from YAML or JSON. */
function DefinitionDialog({ kind, list, example, hint, onClose }: DialogProps) {
  const [, navigate] = useLocation();
  return (
    <Confirm
      wide
      title={`New ${kind}`}
      submitLabel={`Create ${kind}`}
      run={(form) => createFrom(`/api/v1/${list}`, String(form.get('text')))}
      done={({ name, title }) => `Created ${name ?? title}.`}
      refresh={[list]}
      onDone={({ id }) => navigate(`/${list}/${id}`)}
      showsError
      onClose={onClose}
    >
      <Field
        label="Definition"
        name="text"
        className="mono"
        rows={14}
        required
        defaultValue={example}
        hint={hint}
      />
    </Confirm>
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
