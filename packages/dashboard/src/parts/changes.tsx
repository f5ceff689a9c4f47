import { useEffect, useRef } from 'react';

export interface Difference {
  path: string;
  before: string;
  after: string;
}

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
      <div className="scroll-x" tabIndex={0} role="group" aria-label="Changes">
        <table className="table changes">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              {!isNew && <th scope="col">Before</th>}
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {changes.map(({ path, before, after }) => (
              <tr key={path}>
                <th scope="row" className="mono">
                  {path}
                </th>
                {!isNew && <td className="mono">{before}</td>}
                <td className="mono">{after}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
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
