import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Panel } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { createIndex, type CollectionStatus } from './api.js';
import { useDatabaseFeatures } from './features.js';
import { Advice } from './advice.js';

const tones: Readonly<Record<string, Tone>> = { ready: 'good', building: 'busy', failed: 'bad' };

/** The indexes of a collection, those that would help, and how to add one. */
export function Indexes({ name, indexes }: Pick<CollectionStatus, 'name' | 'indexes'>) {
  const features = useDatabaseFeatures();
  return (
    <>
      {features.advice && <Advice collection={name} canCreate={features.createIndex} />}
      <IndexList {...{ name, indexes }} canCreate={features.createIndex} />
    </>
  );
}

interface IndexListProps extends Pick<CollectionStatus, 'name' | 'indexes'> {
  canCreate: boolean;
}

function IndexList({ name, indexes, canCreate }: IndexListProps) {
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
              </tr>
            </thead>
            <tbody>
              {indexes.map((index) => (
                <tr key={index.name}>
                  <th scope="row" className="mono">
                    {index.name}
                  </th>
                  <td>{index.unique ? 'yes' : 'no'}</td>
                  <td>{index.sparse ? 'yes' : 'no'}</td>
                  <td>
                    <Status tone={tones[index.state] ?? 'off'}>{index.state}</Status>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {canCreate ? <CreateIndex collection={name} /> : <ConfigHint name={name} />}
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

function CreateIndex({ collection }: { collection: string }) {
  const [text, setText] = useState('');
  const fields = text
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);
  const create = useAction({
    run: () => createIndex(collection, fields),
    done: () => `Created the index ${fields.join(', ')}.`,
    refresh: ['db-status', 'db-advice'],
    onDone: () => setText(''),
  });
  return (
    <form
      className="panel-body row"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <input
        aria-label="Fields of the new index"
        placeholder="city, age"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit" disabled={fields.length === 0 || create.isPending}>
        Create index
      </button>
    </form>
  );
}
