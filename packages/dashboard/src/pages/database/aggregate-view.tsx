import { useQuery } from '@tanstack/react-query';
import { useEffect, useId, useState } from 'react';
import { Bar } from '../../parts/bar.js';
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
        <label className="field">
          Group by
          <input
            list={names}
            placeholder="city, name"
            value={draft.groupBy}
            onChange={(event) => change({ groupBy: event.target.value })}
          />
        </label>
        <label className="field">
          Compute
          <select
            value={draft.op}
            onChange={(event) => change({ op: event.target.value as AggregateDraft['op'] })}
          >
            {aggregateOps.map(({ op, words }) => (
              <option key={op} value={op}>
                {words}
              </option>
            ))}
          </select>
        </label>
        {draft.op !== 'count' && (
          <label className="field">
            Field
            <input
              list={names}
              placeholder="age"
              value={draft.field}
              aria-invalid={error !== undefined}
              onChange={(event) => change({ field: event.target.value })}
            />
          </label>
        )}
        <label className="field">
          Order
          <select
            value={draft.order}
            onChange={(event) => change({ order: event.target.value as AggregateDraft['order'] })}
          >
            <option value="value">highest first</option>
            <option value="group">by group</option>
          </select>
        </label>
        <label className="field">
          Groups
          <input
            type="number"
            min={1}
            max={500}
            required
            value={draft.limit}
            onChange={(event) => change({ limit: event.target.value })}
          />
        </label>
        <button type="submit" className="primary">
          Compute
        </button>
      </div>
      {error !== undefined && (
        <p role="alert" className="field-error">
          {error}
        </p>
      )}
    </form>
  );
}

function Groups({ groups, draft }: { groups: readonly Group[]; draft: AggregateDraft }) {
  const limit = Number(draft.limit);
  const shown = shownGroups(groups.slice(0, limit));
  const words = aggregateOps.find(({ op }) => op === draft.op)!.words;
  const title = draft.op === 'count' ? 'Records' : `${capitalized(words)} ${draft.field}`;
  if (shown.length === 0) return <Empty title="No record matches the query." />;
  return (
    <Panel title={draft.groupBy === '' ? title : `${title} by ${draft.groupBy}`}>
      <div className="scroll-x" tabIndex={0} role="group" aria-label="Groups">
        <table className="table db-groups">
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col" className="numeric">
                {title}
              </th>
              <th scope="col" className="db-groups-bar">
                Chart
              </th>
              {draft.op !== 'count' && (
                <th scope="col" className="numeric">
                  Records
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.map((group) => (
              <GroupRow key={group.label} group={group} showsCount={draft.op !== 'count'} />
            ))}
          </tbody>
        </table>
      </div>
      {groups.length > limit && (
        <p className="panel-body muted">There are more groups. Increase the number to see them.</p>
      )}
    </Panel>
  );
}

function GroupRow({ group, showsCount }: { group: ShownGroup; showsCount: boolean }) {
  const { label, value, percent, rows } = group;
  const text = typeof value === 'number' ? numberText(value) : cellText(value ?? '–');
  return (
    <tr>
      <th scope="row">
        {rows && rows.length > 0 ? (
          <button
            type="button"
            className="db-open"
            title="Show the records of this group"
            onClick={() => showRecords(rows)}
          >
            {label}
          </button>
        ) : (
          label
        )}
      </th>
      <td className="numeric">{text}</td>
      <td>{percent !== null && <Bar label={`${label}: ${text}`} percent={percent} />}</td>
      {showsCount && <td className="numeric">{count(group.count)}</td>}
    </tr>
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
