import { Panel } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import type { CollectionStatus } from './api.js';

const tones: Readonly<Record<string, Tone>> = { ready: 'good', building: 'busy', failed: 'bad' };

/** The indexes of a collection, and how to add one. */
export function Indexes({ name, indexes }: Pick<CollectionStatus, 'name' | 'indexes'>) {
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
      <div className="panel-body">
        <p>Indexes are part of the database config. To add one, extend it and restart:</p>
        <pre className="mono db-config" tabIndex={0}>
          {`collections:\n  ${name}:\n    indexes:\n      - fields: [FIELD]`}
        </pre>
      </div>
    </Panel>
  );
}
