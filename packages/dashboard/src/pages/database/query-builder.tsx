import { useId } from 'react';
import { Button, Check, Field, Select, SelectField } from '../../parts/controls.js';
import { ops, placeholderOf, type Draft, type DraftError, type Row } from './query.js';

interface QueryBuilderProps {
  draft: Draft;
  /** The error of the last run. */
  error: DraftError | undefined;
  fields: readonly string[];
  /** Leaves out order and limit, which an aggregate has of its own. */
  isFilterOnly: boolean;
  /** The collection has a search index. */
  isSearchable: boolean;
  onDraft: (draft: Draft) => void;
  onRun: () => void;
}

const metadataFields = ['$id', '$key', '$rev', '$created_at', '$updated_at'];

/** Builds a query from rows of field, operator and value. */
export function QueryBuilder({
  draft,
  error,
  fields,
  isFilterOnly,
  isSearchable,
  onDraft,
  onRun,
}: QueryBuilderProps) {
  const names = useId();
  const { rows } = draft;
  const addRow = () => {
    const id = Math.max(-1, ...rows.map((one) => one.id)) + 1;
    const row = { id, field: '', op: 'eq', value: '' };
    onDraft({ ...draft, rows: [...rows, row] });
  };
  const changeRow = (next: Row) =>
    onDraft({ ...draft, rows: rows.map((row) => (row.id === next.id ? next : row)) });
  const removeRow = (id: number) =>
    onDraft({ ...draft, rows: rows.filter((row) => row.id !== id) });
  return (
    <form
      className="panel panel-body stack"
      aria-label="Query"
      onSubmit={(event) => {
        event.preventDefault();
        onRun();
      }}
    >
      <datalist id={names}>
        {[...fields, ...metadataFields].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {isSearchable && !isFilterOnly && (
        <Field
          label="Search words"
          type="search"
          value={draft.search}
          placeholder='durable "exact phrase" pre* -not'
          onChange={(search) => onDraft({ ...draft, search })}
        />
      )}
      {rows.map((row, index) => (
        <RowEditor
          key={row.id}
          row={row}
          names={names}
          number={index + 1}
          error={error?.rowId === row.id ? error.message : undefined}
          onChange={changeRow}
          onRemove={() => removeRow(row.id)}
        />
      ))}
      <div className="db-query-end">
        <Button onClick={addRow}>Add condition</Button>
        {rows.length > 1 && (
          <SelectField
            label="Match"
            value={draft.match}
            options={{ all: 'all conditions', any: 'any condition' }}
            onChange={(match) => onDraft({ ...draft, match: match as Draft['match'] })}
          />
        )}
        {!isFilterOnly && <OrderFields {...{ draft, names, onDraft }} />}
        <button type="submit" className={isFilterOnly ? undefined : 'primary'}>
          {isFilterOnly ? 'Apply' : 'Run'}
        </button>
      </div>
    </form>
  );
}

interface OrderFieldsProps extends Pick<QueryBuilderProps, 'draft' | 'onDraft'> {
  names: string;
}

function OrderFields({ draft, names, onDraft }: OrderFieldsProps) {
  return (
    <>
      <Field
        label="Sort by"
        list={names}
        placeholder="id"
        value={draft.sortBy}
        onChange={(sortBy) => onDraft({ ...draft, sortBy })}
      />
      <Check
        label="Descending"
        checked={draft.descending}
        onChange={(descending) => onDraft({ ...draft, descending })}
      />
      <Field
        label="Limit"
        type="number"
        min={1}
        max={100_000}
        required
        value={draft.limit}
        onChange={(limit) => onDraft({ ...draft, limit })}
      />
    </>
  );
}

interface RowEditorProps {
  row: Row;
  names: string;
  number: number;
  error: string | undefined;
  onChange: (row: Row) => void;
  onRemove: () => void;
}

function RowEditor({ row, names, number, error, onChange, onRemove }: RowEditorProps) {
  const errorId = useId();
  return (
    <div className="db-row" role="group" aria-label={`Condition ${number}`}>
      <input
        aria-label="Field"
        placeholder="field"
        list={names}
        value={row.field}
        onChange={(event) => onChange({ ...row, field: event.target.value })}
      />
      <Select
        aria-label="Operator"
        value={row.op}
        options={ops}
        onChange={(op) => onChange({ ...row, op })}
      />
      <input
        aria-label="Value"
        className="mono"
        placeholder={placeholderOf(row.op)}
        value={row.value}
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : errorId}
        onChange={(event) => onChange({ ...row, value: event.target.value })}
      />
      <button type="button" className="plain" aria-label="Remove condition" onClick={onRemove}>
        ✕
      </button>
      {error !== undefined && (
        <p id={errorId} className="field-error db-row-error">
          {error}
        </p>
      )}
    </div>
  );
}
