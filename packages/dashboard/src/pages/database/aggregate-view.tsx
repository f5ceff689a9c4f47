import { useQuery } from '@tanstack/react-query';
import { useEffect, useId, useState } from 'react';
import { Bar } from '../../parts/bar.js';
import { Button, Field, FormError, SelectField } from '../../parts/controls.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { count } from '../../parts/format.js';
import { setParams, useParamText } from '../../parts/location.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import {
  aggregateBody,
  aggregateError,
  aggregateIn,
  aggregateOps,
  aggregateParams,
  shownGroups,
  type AggregateDraft,
  type ShownGroup,
} from './aggregate.js';
import { aggregate, type CollectionStatus } from './api.js';
import { cellText } from './fields.js';
import { PlanView } from './plan-view.js';
import { draftIn, paramsOf } from './query-params.js';
import type { Condition, Group } from './query.js';

interface AggregateViewProps {
  collection: string;
  filter: Condition | undefined;
  status: CollectionStatus | null | undefined;
  /** Field names to suggest. */
  fields: readonly string[];
  /** Changes when the query runs again. */
  run: number;
}

/** Groups the records of the query and draws one value of each group. */
export function AggregateView({ collection, filter, status, fields, run }: AggregateViewProps) {
  const text = useParamText();
  const submitted = aggregateIn(text);
  const key = JSON.stringify(submitted);
  const [draft, setDraft] = useState(submitted);
  const [error, setError] = useState<string>();
  useEffect(() => setDraft(aggregateIn(text)), [key]);
  const isReady = aggregateError(submitted) === undefined;
  const groups = useQuery({
    queryKey: ['db-aggregate', collection, filter, key, run],
    queryFn: () => aggregate(collection, aggregateBody(submitted, filter)),
    enabled: isReady,
    refetchInterval: false,
    refetchOnWindowFocus: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <>
      <AggregateForm
        {...{ draft, error, fields }}
        onDraft={setDraft}
        onRun={() => {
          const mistake = aggregateError(draft);
          setError(mistake);
          if (mistake !== undefined) return;
          setParams(aggregateParams(draft));
          if (JSON.stringify(draft) === key) void groups.refetch();
        }}
      />
      {isReady && (
        <Loaded query={groups}>
          {({ groups: found, plan }) => (
            <>
              {plan && (
                <PlanView
                  {...{ plan, collection }}
                  records={status?.records}
                  couldUseIndex={filter !== undefined}
                />
              )}
              <Groups groups={found} draft={submitted} />
            </>
          )}
        </Loaded>
      )}
    </>
  );
}

interface FormProps {
  draft: AggregateDraft;
  error: string | undefined;
  fields: readonly string[];
  onDraft: (draft: AggregateDraft) => void;
  onRun: () => void;
}

function AggregateForm({ draft, error, fields, onDraft, onRun }: FormProps) {
  const names = useId();
  const change = (next: Partial<AggregateDraft>) => onDraft({ ...draft, ...next });
  return (
    <form
      className="panel panel-body stack"
      aria-label="Aggregate"
      onSubmit={(event) => {
        event.preventDefault();
        onRun();
      }}
    >
      <datalist id={names}>
        {fields.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div className="db-query-end">
        <Field
          label="Group by"
          list={names}
          placeholder="city, name"
          value={draft.groupBy}
          onChange={(groupBy) => change({ groupBy })}
        />
        <SelectField
          label="Compute"
          value={draft.op}
          options={aggregateOps}
          onChange={(op) => change({ op: op as AggregateDraft['op'] })}
        />
        {draft.op !== 'count' && (
          <Field
            label="Field"
            list={names}
            placeholder="age"
            value={draft.field}
            aria-invalid={error !== undefined}
            onChange={(field) => change({ field })}
          />
        )}
        <SelectField
          label="Order"
          value={draft.order}
          options={{ value: 'highest first', group: 'by group' }}
          onChange={(order) => change({ order: order as AggregateDraft['order'] })}
        />
        <Field
          label="Groups"
          type="number"
          min={1}
          max={500}
          required
          value={draft.limit}
          onChange={(limit) => change({ limit })}
        />
        <button type="submit" className="primary">
          Compute
        </button>
      </div>
      <FormError>{error}</FormError>
    </form>
  );
}

function Groups({ groups, draft }: { groups: readonly Group[]; draft: AggregateDraft }) {
  const limit = Number(draft.limit);
  const shown = shownGroups(groups.slice(0, limit));
  const isCount = draft.op === 'count';
  const title = isCount ? 'Records' : `${capitalized(aggregateOps[draft.op])} ${draft.field}`;
  if (shown.length === 0) return <Empty title="No record matches the query." />;
  const columns: DataColumn<ShownGroup>[] = [
    { header: 'Group', cell: (group) => <GroupName group={group} /> },
    { header: title, numeric: true, cell: textOf },
    {
      header: 'Chart',
      className: 'db-groups-bar',
      cell: (group) =>
        group.percent !== null && (
          <Bar label={`${group.label}: ${textOf(group)}`} percent={group.percent} />
        ),
    },
    ...(isCount
      ? []
      : [{ header: 'Records', numeric: true, cell: (group: ShownGroup) => count(group.count) }]),
  ];
  return (
    <Panel title={draft.groupBy === '' ? title : `${title} by ${draft.groupBy}`}>
      <DataTable
        label="Groups"
        className="db-groups"
        isCards={false}
        columns={columns}
        rows={shown}
        rowKey={({ label }) => label}
      />
      {groups.length > limit && (
        <p className="panel-body muted">There are more groups. Increase the number to see them.</p>
      )}
    </Panel>
  );
}

const textOf = ({ value }: ShownGroup): string =>
  typeof value === 'number' ? numberText(value) : cellText(value ?? '–');

function GroupName({ group: { label, rows } }: { group: ShownGroup }) {
  if (!rows || rows.length === 0) return label;
  return (
    <Button
      className="db-open"
      title="Show the records of this group"
      onClick={() => showRecords(rows)}
    >
      {label}
    </Button>
  );
}

/** Adds the conditions of a group to the query and shows its records. */
function showRecords(rows: NonNullable<ShownGroup['rows']>): void {
  const draft = draftIn(location.hash.split('?', 2)[1] ?? '');
  const added = rows.map((row, index) => ({ ...row, id: draft.rows.length + index }));
  setParams({ ...paramsOf({ ...draft, rows: [...draft.rows, ...added] }), tab: '' });
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

const numberText = (value: number): string =>
  Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(6)));
