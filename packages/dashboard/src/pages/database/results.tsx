import { ApiError } from '@millrace/client';
import { useQuery } from '@tanstack/react-query';
import { useAction } from '../../parts/action.js';
import { count } from '../../parts/format.js';
import { useColumnWidths } from '../../parts/column-widths.js';
import { setParams, useIdParam } from '../../parts/location.js';
import { Empty, Failure, Loading } from '../../parts/states.js';
import { toast } from '../../parts/toast.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { find, updateIfRev, type CollectionStatus, type DbRecord } from './api.js';
import { ColumnChoice } from './column-choice.js';
import { columnsFor, nameOf, type Sort } from './columns.js';
import { shownFields } from './fields.js';
import { PlanView } from './plan-view.js';
import { paramsOf } from './query-params.js';
import { emptyDraft } from './query.js';
import type { SubmittedQuery, useFind } from './use-find.js';

interface ResultsProps {
  collection: string;
  found: ReturnType<typeof useFind>;
  status: CollectionStatus | null | undefined;
  /** Field names in the records. */
  names: readonly string[];
  submitted: SubmittedQuery;
  onOpen: (id: string) => void;
}

export function Results({ collection, found, status, names, submitted, onOpen }: ResultsProps) {
  const { query, records, plan, fetchMore } = found;
  const [chosen, setChosen] = useIdParam('columns');
  const isNarrow = useIsNarrow();
  const resize = useColumnWidths(`db.${collection}`);
  const edit = useCellEdit(collection, found);
  const failure = query.isError && <Failure error={query.error} onRetry={query.refetch} />;
  if (query.isPending) return <Loading />;
  if (records.length === 0 && failure) return failure;
  const fields = shownFields(chosen, names);
  const [order] = submitted.body.order_by ?? [];
  const sort = order && { field: order.field, isDescending: order.desc };
  const savingId = edit.isPending ? edit.variables.record.id : undefined;
  return (
    <>
      {failure}
      <div className="row db-head">
        {plan ? (
          <PlanView
            {...{ plan, collection }}
            records={status?.records}
            couldUseIndex={submitted.body.filter !== undefined || order !== undefined}
          />
        ) : (
          <span />
        )}
        {!isNarrow && records.length > 0 && (
          <ColumnChoice
            names={names}
            shown={fields}
            onChange={(shown) => setChosen(shown.join(','))}
          />
        )}
      </div>
      {records.length === 0 ? (
        <NoRecords isMissing={status === null} isFiltered={submitted.body.filter !== undefined} />
      ) : (
        <div className="stack db-results" aria-busy={query.isPlaceholderData}>
          <VirtualTable
            label="Records"
            columns={columnsFor({
              fields,
              records,
              sort,
              savingId,
              isNarrow,
              onOpen,
              onSort: sortBy,
              onEdit: edit.mutate,
            })}
            rows={records}
            rowKey={({ id }) => id}
            onNearEnd={fetchMore}
            resize={resize}
          />
          <p className="muted" role="status">
            {count(records.length)} shown{query.hasNextPage && ', more as you scroll'}
            <Total {...{ collection, submitted }} records={status?.records} />
          </p>
        </div>
      )}
    </>
  );
}

function sortBy({ field, isDescending }: Sort): void {
  setParams({ sort: paramsOf({ ...emptyDraft, sortBy: field, descending: isDescending }).sort });
}

/** Counting reads every matching row, so a large collection is not counted unasked. */
const maxCounted = 200_000;

interface TotalProps {
  collection: string;
  submitted: SubmittedQuery;
  records: number | undefined;
}

function Total({ collection, submitted: { body, limit, run }, records }: TotalProps) {
  const { filter } = body;
  const { data } = useQuery({
    queryKey: ['db-count', collection, filter, run],
    queryFn: async () => (await find(collection, { filter: filter!, count_only: true })).count,
    enabled: filter !== undefined && records !== undefined && records <= maxCounted,
    refetchInterval: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const total = filter === undefined ? records : data;
  if (total === undefined) return null;
  const cut = total > limit ? `, the limit is ${count(limit)}` : '';
  return `; ${count(total)} in total${cut}`;
}

interface CellEdit {
  record: DbRecord;
  field: string;
  value: unknown;
}

/** Saves one field if the record still has the revision that is shown. */
function useCellEdit(collection: string, found: ReturnType<typeof useFind>) {
  return useAction({
    run: ({ record, field, value }: CellEdit) =>
      updateIfRev(collection, record, { ...record.data, [field]: value }),
    done: ({ rev }) => `Saved as revision ${rev}.`,
    refresh: ['db-status'],
    onDone: (record) => {
      const change = { op: 'CHANGE_OP_UPDATE' as const, record, entered: false, left: false };
      found.apply([{ ...change, at: '', committedAt: undefined }]);
    },
    onFailed: (error, { record }) => {
      if (!(error instanceof ApiError) || error.code !== 'REV_MISMATCH') return false;
      toast('bad', `${nameOf(record)} changed meanwhile. Nothing was saved: run the query again.`);
      return true;
    },
  });
}

function NoRecords({ isMissing, isFiltered }: { isMissing: boolean; isFiltered: boolean }) {
  if (isMissing) {
    return (
      <Empty title="This collection does not exist.">
        Check the name, or insert a record to create it.
      </Empty>
    );
  }
  return isFiltered ? (
    <Empty title="No record matches the query.">
      Comparisons are typed: <code>18</code> is a number, <code>"18"</code> is a string.
    </Empty>
  ) : (
    <Empty title="This collection has no records." />
  );
}
