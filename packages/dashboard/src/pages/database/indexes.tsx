import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { Panel } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { Advice } from './advice.js';
import { dropIndex, type CollectionStatus } from './api.js';
import { CreateIndex } from './create-index.js';
import { useDatabaseFeatures } from './features.js';

const tones: Readonly<Record<string, Tone>> = { ready: 'good', building: 'busy', failed: 'bad' };

/** The indexes of a collection, those that would help, and how to add one. */
export function Indexes({ name, indexes }: Pick<CollectionStatus, 'name' | 'indexes'>) {
  const features = useDatabaseFeatures();
  return (
    <>
      {features.advice && <Advice collection={name} canCreate={features.createIndex} />}
      <IndexList
        {...{ name, indexes }}
        canCreate={features.createIndex}
        canDrop={features.dropIndex}
      />
    </>
  );
}

interface IndexListProps extends Pick<CollectionStatus, 'name' | 'indexes'> {
  canCreate: boolean;
  canDrop: boolean;
}

function IndexList({ name, indexes, canCreate, canDrop }: IndexListProps) {
  const [dropping, setDropping] = useState<string>();
  return (
    <Panel title="Indexes">
      {indexes.length === 0 ? (
        <Empty title="This collection has no index." />
      ) : (
        <div className="scroll-x" tabIndex={0} role="group" aria-label="Indexes">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Fields</th>
                <th scope="col">Unique</th>
                <th scope="col">Sparse</th>
                <th scope="col">State</th>
                {canDrop && <th scope="col">Action</th>}
              </tr>
            </thead>
            <tbody>
              {indexes.map((index) => (
                <tr key={`${index.name} ${index.unique} ${index.sparse}`}>
                  <th scope="row" className="mono">
                    {index.name}
                  </th>
                  <td>{index.unique ? 'yes' : 'no'}</td>
                  <td>{index.sparse ? 'yes' : 'no'}</td>
                  <td>
                    <Status tone={tones[index.state] ?? 'off'}>{index.state}</Status>
                  </td>
                  {canDrop && (
                    <td>
                      <button
                        type="button"
                        className="small"
                        aria-label={`Drop ${index.name}`}
                        onClick={() => setDropping(index.name)}
                      >
                        Drop…
                      </button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {canCreate ? <CreateIndex collection={name} indexes={indexes} /> : <ConfigHint name={name} />}
      {dropping !== undefined && (
        <DropIndex collection={name} index={dropping} onClose={() => setDropping(undefined)} />
      )}
    </Panel>
  );
}

function ConfigHint({ name }: { name: string }) {
  return (
    <div className="panel-body">
      <p>Indexes are part of the database config. To add one, extend it and restart:</p>
      <pre className="mono db-config" tabIndex={0}>
        {`collections:\n  ${name}:\n    indexes:\n      - fields: [FIELD]`}
      </pre>
    </div>
  );
}

interface DropIndexProps {
  collection: string;
  index: string;
  onClose: () => void;
}

/** Asks before it drops an index. A refusal stays in the dialog. */
function DropIndex({ collection, index, onClose }: DropIndexProps) {
  const drop = useAction({
    run: () => dropIndex(collection, index),
    done: () => `Dropped the index ${index}.`,
    refresh: ['db-status', 'db-advice'],
    onDone: onClose,
    onFailed: () => true,
  });
  return (
    <FormDialog
      title={`Drop the index ${index}?`}
      submitLabel="Drop index"
      dangerous
      busy={drop.isPending}
      error={drop.error}
      onSubmit={() => drop.mutate()}
      onClose={onClose}
    >
      <p>
        Queries that use it read the whole collection from then on. A unique index no longer refuses
        duplicates. Records do not change.
      </p>
    </FormDialog>
  );
}
