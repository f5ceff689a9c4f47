import { Button } from '../../parts/controls.js';
import { Time } from '../../parts/time.js';
import type { DbRecord } from './api.js';
import { dataText, differing } from './data.js';

interface ConflictProps {
  theirs: DbRecord;
  /** The text in the editor. */
  mine: string;
  onTakeTheirs: () => void;
  onKeepMine: () => void;
}

/** Shows the other write of a revision conflict and the two ways to resolve it. */
export function Conflict({ theirs, mine, onTakeTheirs, onKeepMine }: ConflictProps) {
  const names = differing(theirs.data, mine);
  return (
    <div className="db-conflict stack" role="alert">
      <p>
        <strong>This record changed while you edited it</strong> (<Time at={theirs.updated_at} />,
        now at revision {theirs.rev}). Your version is not saved.
        {names.length > 0 && ` Conflicting fields: ${names.join(', ')}.`}
      </p>
      <details open>
        <summary>Current version</summary>
        <pre className="db-theirs" tabIndex={0}>
          {dataText(theirs.data)}
        </pre>
      </details>
      <div className="row">
        <Button onClick={onTakeTheirs}>Discard my changes</Button>
        <Button onClick={onKeepMine}>Overwrite with mine</Button>
      </div>
    </div>
  );
}
