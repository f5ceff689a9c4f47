import { Confirm } from '../../parts/confirm.js';
import { DialogButton } from '../../parts/controls.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { Panel } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { Advice } from './advice.js';
import { dropIndex, type CollectionStatus, type IndexStatus } from './api.js';
import { CreateIndex } from './create-index.js';

const tones: Readonly<Record<string, Tone>> = { ready: 'good', building: 'busy', failed: 'bad' };

/** The indexes of a collection, those that would help, and how to add one. */
export function Indexes({ name, indexes }: Pick<CollectionStatus, 'name' | 'indexes'>) {
  const columns: DataColumn<IndexStatus>[] = [
    { header: 'Fields', className: 'mono', cell: (index) => index.name },
    { header: 'Unique', cell: ({ unique }) => (unique ? 'yes' : 'no') },
    { header: 'Sparse', cell: ({ sparse }) => (sparse ? 'yes' : 'no') },
    {
      header: 'State',
      cell: ({ state }) => <Status tone={tones[state] ?? 'off'}>{state}</Status>,
    },
    {
      header: 'Action',
      cell: (index) => (
        <DialogButton className="small" aria-label={`Drop ${index.name}`} label="Drop…">
          {(onClose) => <DropIndex collection={name} index={index.name} onClose={onClose} />}
        </DialogButton>
      ),
    },
  ];
  return (
    <>
      <Advice collection={name} />
      <Panel title="Indexes">
        {indexes.length === 0 ? (
          <Empty title="This collection has no index." />
        ) : (
          <DataTable
            label="Indexes"
            isCards={false}
            columns={columns}
            rows={indexes}
            rowKey={(index) => `${index.name} ${index.unique} ${index.sparse}`}
          />
        )}
        <CreateIndex collection={name} indexes={indexes} />
      </Panel>
    </>
  );
}

interface DropIndexProps {
  collection: string;
  index: string;
  onClose: () => void;
}

/** Asks before it drops an index. A refusal stays in the dialog. */
function DropIndex({ collection, index, onClose }: DropIndexProps) {
  return (
    <Confirm
      title={`Drop the index ${index}?`}
      submitLabel="Drop index"
      dangerous
      run={() => dropIndex(collection, index)}
      done={() => `Dropped the index ${index}.`}
      refresh={['db-status', 'db-advice']}
      showsError
      onClose={onClose}
    >
      <p>
        Queries that use it read the whole collection from then on. A unique index no longer refuses
        duplicates. Records do not change.
      </p>
    </Confirm>
  );
}
