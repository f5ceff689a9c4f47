import { useState } from 'react';
import type { WorkAction } from './api.js';

interface ActionFieldsProps {
  action: WorkAction;
  /** The name of the session, the default of messages and titles. */
  name: string;
  base: string | null;
}

/** The fields of an action; their names are those of the request. */
export function ActionFields({ action, name, base }: ActionFieldsProps) {
  switch (action) {
    case 'commit':
      return (
        <label className="field">
          Message
          <textarea name="message" rows={4} placeholder={name} />
          <span className="field-hint">Commits every change in the workspace.</span>
        </label>
      );
    case 'push':
      return (
        <>
          <p>Uncommitted changes stay behind.</p>
          <label className="check">
            <input type="checkbox" name="force" />
            Replace the remote branch after a rebase
          </label>
        </>
      );
    case 'open-pr':
      return (
        <>
          <label className="field">
            Title
            <input name="title" maxLength={256} defaultValue={name} />
          </label>
          <label className="field">
            Description
            <textarea name="body" rows={5} />
          </label>
          <label className="check">
            <input type="checkbox" name="draft" />
            Draft
          </label>
          <p className="muted">Pushes the branch first. Needs gh on the machine of the daemon.</p>
        </>
      );
    case 'merge':
      return <MergeFields base={base} />;
    case 'rebase':
      return (
        <p>
          Replays the commits of the branch on {base ?? 'its base'}. Nothing changes if a commit
          conflicts.
        </p>
      );
  }
}

function MergeFields({ base }: { base: string | null }) {
  const [strategy, setStrategy] = useState('merge');
  return (
    <>
      <p>
        Merges the branch into {base ?? 'its base'} of this repository. Nothing changes if it
        conflicts.
      </p>
      <label className="field">
        Strategy
        <select
          name="strategy"
          value={strategy}
          onChange={(event) => setStrategy(event.target.value)}
        >
          <option value="merge">Merge commit</option>
          <option value="squash">Squash into one commit</option>
          <option value="rebase">Rebase the commits</option>
        </select>
      </label>
      {strategy !== 'rebase' && (
        <label className="field">
          Message
          <textarea name="message" rows={3} placeholder="From the branch and its commits" />
        </label>
      )}
    </>
  );
}
