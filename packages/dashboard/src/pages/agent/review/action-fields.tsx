import { useState } from 'react';
import { Check, Field, SelectField } from '../../../parts/controls.js';
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
        <Field
          label="Message"
          name="message"
          rows={4}
          placeholder={name}
          hint="Commits every change in the workspace."
        />
      );
    case 'push':
      return (
        <>
          <p>Uncommitted changes stay behind.</p>
          <Check label="Replace the remote branch after a rebase" name="force" />
        </>
      );
    case 'open-pr':
      return (
        <>
          <Field label="Title" name="title" maxLength={256} defaultValue={name} />
          <Field label="Description" name="body" rows={5} />
          <Check label="Draft" name="draft" />
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
      <SelectField
        label="Strategy"
        name="strategy"
        value={strategy}
        options={{
          merge: 'Merge commit',
          squash: 'Squash into one commit',
          rebase: 'Rebase the commits',
        }}
        onChange={setStrategy}
      />
      {strategy !== 'rebase' && (
        <Field
          label="Message"
          name="message"
          rows={3}
          placeholder="From the branch and its commits"
        />
      )}
    </>
  );
}
