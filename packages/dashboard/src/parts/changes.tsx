import { ApiError } from '@millrace/client';
import { useEffect, useRef } from 'react';
import { DataTable, type DataColumn } from './data-table.js';

export interface Difference {
  path: string;
  before: string;
  after: string;
}

const columns: readonly DataColumn<Difference>[] = [
  { header: 'Setting', className: 'mono', cell: ({ path }) => path },
  { header: 'Before', className: 'mono', cell: ({ before }) => before },
  { header: 'After', className: 'mono', cell: ({ after }) => after },
];

/** What is about to be saved, setting by setting. */
export function ChangeTable({
  changes,
  isNew = false,
}: {
  changes: readonly Difference[];
  isNew?: boolean;
}) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    // The form above it can be longer than the dialog.
    section.current?.scrollIntoView({ block: 'start' });
  }, [changes]);
  if (changes.length === 0) return <p role="status">Nothing changes.</p>;
  return (
    <section ref={section} className="change-review" aria-label="Changes">
      <h3>{isNew ? 'The server will write' : 'Changes'}</h3>
      <DataTable
        label="Changes"
        className="changes"
        isCards={false}
        columns={isNew ? columns.filter(({ header }) => header !== 'Before') : columns}
        rows={changes}
        rowKey={({ path }) => path}
      />
    </section>
  );
}

/** What the server says about fields of a refused request; the pointer has no first slash. */
export function faultsOf(error: unknown): { pointer: string; message: string }[] {
  const body = error instanceof ApiError ? error.body : undefined;
  const { errors = [] } = (body ?? {}) as { errors?: { pointer: string; message: string }[] };
  return errors.map((fault) => ({ ...fault, pointer: fault.pointer.replace(/^#?\//, '') }));
}

/** Messages of the server by setting. */
export function SettingErrors({ errors }: { errors: ReadonlyMap<string, string> }) {
  return (
    <div role="alert" className="field-error">
      <ul>
        {[...errors].map(([path, detail]) => (
          <li key={path}>
            <code>{path || 'config'}</code>: {detail}
          </li>
        ))}
      </ul>
    </div>
  );
}
